"""A document of the contract becomes the configuration of an agent; the one place where its models are read.

An agent that runs alone does this in a process of its own (`wiring.contract_apart`); a joined one in its own.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from vacancy_agent import translate
from vacancy_agent.translate import LISTEN_ALONE
from vacancy_agent.wiring.config import Configuration, RefusedError, Token
from vacancy_api.agent_config import TokenDigest, build_agent_config
from vacancy_api.manifest import load_manifest
from vacancy_api.problems import ContractInvalid

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from vacancy_agent.store.state import Tokens
    from vacancy_api.agent_config import AgentConfig


def alone(manifest: Path | bytes, tokens: Tokens) -> Configuration:
    """Read a manifest, given by its path or its content, for an agent without a cluster.

    Raises:
        RefusedError: with everything that is wrong with it.
    """
    digests = [
        TokenDigest.of("borrow", ["borrow"], tokens.borrow),
        TokenDigest.of("read", ["read"], tokens.read),
        TokenDigest.of("admin", ["admin"], tokens.admin),
    ]
    try:
        host = load_manifest(manifest)
        return configuration(build_agent_config(host, digests, default_listen=LISTEN_ALONE))
    except ContractInvalid as error:
        raise RefusedError([str(one) for one in error.errors]) from error


def configuration(document: AgentConfig) -> Configuration:
    """Translate a configuration document.

    Raises:
        RefusedError: it is valid to the contract, and contradicts itself all the same.
    """
    settings = translate.host_settings(document.spec)
    errors = [f"{path}: {problem}" for path, problem in translate.models_named_twice(document.spec)]
    if errors:
        raise RefusedError(errors)
    return Configuration(
        digest=document.digest,
        host=settings,
        access=translate.access_settings(document.spec.access),
        limits=translate.limits(document.spec.limits),
        tokens=tokens_of(document.tokens),
        document=_redacted(document.document()),
    )


def tokens_of(tokens: Iterable[TokenDigest]) -> tuple[Token, ...]:
    """Tokens of the contract as the agent keeps them."""
    return tuple(Token(token.name, tuple(token.scopes), token.sha256) for token in tokens)


def _redacted(document: dict[str, Any]) -> str:
    """Whoever reads it may learn who can borrow, and nothing that a guess could be tried against."""
    tokens = [token | {"sha256": "redacted"} for token in document["tokens"]]
    return json.dumps(document | {"tokens": tokens})
