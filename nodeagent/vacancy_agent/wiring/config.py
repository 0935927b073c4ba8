"""A manifest in a file becomes the configuration of an agent that runs alone."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vacancy_agent import translate
from vacancy_agent.translate import LISTEN_ALONE
from vacancy_api.agent_config import AgentConfig, TokenDigest, build_agent_config
from vacancy_api.manifest import load_manifest
from vacancy_api.problems import ContractInvalid
from vacancy_api.yaml_document import MAX_BYTES
from vacancy_dialects import UnknownDialectError, table_for

if TYPE_CHECKING:
    from pathlib import Path

    from vacancy_agent.core.settings import AccessSettings, Dialect, HostSettings, Limits
    from vacancy_agent.store.state import Tokens


class RefusedError(Exception):
    """A configuration cannot be run; one line for each reason, beginning with its path."""

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
    local_tokens: tuple[TokenDigest, ...] = ()
    """Tokens of this machine, which no cluster can take away."""

    @property
    def token_entries(self) -> list[tuple[str, list[str], str]]:
        """Tokens as the border takes them: name, scopes, digest."""
        tokens = (*self.document.tokens, *self.local_tokens)
        return [(token.name, list(token.scopes), token.sha256) for token in tokens]


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
        RefusedError: it is valid, but asks for what this version of the agent does not do.
    """
    settings = translate.host_settings(document.spec)
    errors = [
        f"spec.upstreams[{index}].dialect: {upstream.dialect} is not served by this version yet"
        for index, upstream in enumerate(settings.upstreams.values())
        if not _served(upstream.dialect)
    ]
    if errors:
        raise RefusedError(errors)
    return Configuration(
        document,
        settings,
        translate.access_settings(document.spec.access),
        translate.limits(document.spec.limits),
    )


def content_of(manifest: Path) -> bytes:
    """What the file holds; a little over what a manifest may have at most.

    Raises:
        RefusedError: it cannot be read.
    """
    try:
        with manifest.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RefusedError([f"cannot be read: {error.strerror or error}"]) from error


def content_again(manifest: Path) -> bytes | None:
    """What the file holds now; None: it cannot be read just now, or is no file that can be read twice."""
    try:
        return content_of(manifest) if stat.S_ISREG(manifest.stat().st_mode) else None
    except (OSError, RefusedError):
        return None


def why_unreadable(manifest: Path) -> str | None:
    """Why the file cannot be read again; None: it can, or it is no file that can be read twice."""
    try:
        if stat.S_ISREG(manifest.stat().st_mode):
            content_of(manifest)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    except RefusedError as error:
        return "; ".join(error.errors)
    return None


def _served(dialect: Dialect) -> bool:
    try:
        table_for(dialect.value)
    except UnknownDialectError:
        return False
    return True
