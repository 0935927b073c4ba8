"""A manifest in a file becomes the configuration of an agent that runs alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vacancy_agent import translate
from vacancy_agent.translate import LISTEN_ALONE
from vacancy_api.agent_config import AgentConfig, TokenDigest, build_agent_config
from vacancy_api.manifest import load_manifest
from vacancy_dialects import UnknownDialectError, table_for

if TYPE_CHECKING:
    from pathlib import Path

    from vacancy_agent.core.settings import AccessSettings, Dialect, HostSettings, Limits
    from vacancy_agent.store.state import Tokens


class UnservedError(Exception):
    """The manifest is valid, but asks for what this version of the agent does not do; one line for each."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__("; ".join(errors))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Configuration:
    """What an agent runs by."""

    document: AgentConfig
    host: HostSettings
    access: AccessSettings
    limits: Limits

    @property
    def token_entries(self) -> list[tuple[str, list[str], str]]:
        """Tokens as the border takes them: name, scopes, digest."""
        return [(token.name, list(token.scopes), token.sha256) for token in self.document.tokens]


def alone(manifest: Path, tokens: Tokens) -> Configuration:
    """Read a manifest for an agent without a cluster.

    Raises:
        ManifestInvalid: with every error of the manifest.
        AgentConfigInvalid: the parts do not go together.
        UnservedError: it asks for what this version does not do.
    """
    host = load_manifest(manifest)
    digests = [
        TokenDigest.of("borrow", ["borrow"], tokens.borrow),
        TokenDigest.of("read", ["read"], tokens.read),
        TokenDigest.of("admin", ["admin"], tokens.admin),
    ]
    return configuration(build_agent_config(host, digests, default_listen=LISTEN_ALONE))


def configuration(document: AgentConfig) -> Configuration:
    """Translate a configuration document.

    Raises:
        UnservedError: it asks for what this version does not do.
    """
    settings = translate.host_settings(document.spec)
    errors = []
    for index, upstream in enumerate(settings.upstreams.values()):
        if not _served(upstream.dialect):
            errors.append(
                f"spec.upstreams[{index}].dialect: {upstream.dialect} is not served by this version yet"
            )
    if errors:
        raise UnservedError(errors)
    return Configuration(
        document,
        settings,
        translate.access_settings(document.spec.access),
        translate.limits(document.spec.limits),
    )


def fingerprint(manifest: Path) -> str | None:
    """What a file holds, to see that it changed; None: it cannot be read just now."""
    try:
        return hashlib.sha256(manifest.read_bytes()).hexdigest()
    except OSError:
        return None


def _served(dialect: Dialect) -> bool:
    try:
        table_for(dialect.value)
    except UnknownDialectError:
        return False
    return True
