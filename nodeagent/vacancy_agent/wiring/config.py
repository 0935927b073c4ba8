"""What an agent runs by, and the manifest file that it comes from.

The contract's models are not imported here: pydantic and PyYAML with them take a quarter of the memory of an
agent that has nothing to do, for an answer that is needed once (`wiring.contract`, `wiring.contract_apart`).
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from vacancy_agent.core.settings import AccessSettings, HostSettings, Limits

MOST_BYTES: Final = 256 << 10
"""Of a manifest; the contract's own bound (`vacancy_api.yaml_document`), which a test compares."""


class RefusedError(Exception):
    """A configuration cannot be run; one line for each reason, beginning with its path."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__("; ".join(errors))
        self.errors = errors


class Token(NamedTuple):
    """A token that the agent accepts, known by its digest only; as the border takes it."""

    name: str
    scopes: tuple[str, ...]
    sha256: str


@dataclass(frozen=True, slots=True)
class Configuration:
    """What an agent runs by."""

    digest: str
    """Of the document that it was made from."""
    host: HostSettings
    access: AccessSettings
    limits: Limits
    tokens: tuple[Token, ...]
    document: str
    """That document as JSON, without the digests of its tokens: for people."""
    local_tokens: tuple[Token, ...] = ()
    """Tokens of this machine, which no cluster can take away."""

    @property
    def token_entries(self) -> tuple[Token, ...]:
        """Every token that is accepted."""
        return (*self.tokens, *self.local_tokens)


def content_of(manifest: Path) -> bytes:
    """What the file holds; a little over what a manifest may have at most.

    Raises:
        RefusedError: it cannot be read.
    """
    try:
        with manifest.open("rb") as file:
            return file.read(MOST_BYTES + 1)
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
