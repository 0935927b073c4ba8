"""Who is asking: bearer tokens, compared by SHA-256 digest.

Invariant: a token grants exactly the scopes written beside it. Only *verified* header values are remembered,
in a bounded table, so that unknown tokens cost their sender a digest each and us no memory.

Comparing digests by looking them up is safe where comparing tokens would not be: whoever does not know a
token cannot choose its digest, so the time of the look-up tells nothing. Verified raw headers are looked up
as they are; Python's hash of bytes is keyed per process, and only equal values are ever compared byte by
byte.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_REMEMBERED: Final = 1024
_LONGEST: Final = 4096
_DIGEST_BYTES: Final = 32


class Scope(StrEnum):
    """What a token may be used for; no scope contains another."""

    BORROW = "borrow"
    READ = "read"
    ADMIN = "admin"
    RELAY = "relay"
    """The gateway's: work, and belief in its X-Vacancy-Borrower and its priority."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever holds a token."""

    name: str
    scopes: frozenset[Scope]
    may_borrow: bool = field(init=False, compare=False)
    relays: bool = field(init=False, compare=False)

    def __post_init__(self) -> None:
        relays = Scope.RELAY in self.scopes
        object.__setattr__(self, "relays", relays)
        object.__setattr__(self, "may_borrow", relays or Scope.BORROW in self.scopes)


class TokenTable:
    """The tokens one listener knows."""

    def __init__(self, entries: Iterable[tuple[str, Iterable[str], str]]) -> None:
        """Entries are (name, scopes, SHA-256 as 64 hex digits); entries with one digest are one principal.

        Raises:
            ValueError: A digest is not 32 bytes of hex, or a scope is unknown.
        """
        self._by_digest: dict[bytes, Principal] = {}
        self._by_authorization: dict[bytes, Principal] = {}
        self._by_api_key: dict[bytes, Principal] = {}
        for name, scopes, digest in entries:
            self._add(name, frozenset(map(Scope, scopes)), bytes.fromhex(digest))

    def __len__(self) -> int:
        return len(self._by_digest)

    def check(self, authorization: bytes | None, x_api_key: bytes | None) -> Principal | None:
        """Who these header values stand for, or None.

        None also when both headers carry a credential and they are not the same token: servers differ in
        which of the two they would believe.
        """
        if x_api_key is None:
            if authorization is None:
                return None
            found = self._by_authorization.get(authorization)
            return found or self._remember(self._by_authorization, authorization, _bearer(authorization))
        if authorization is not None:
            token = _bearer(authorization)
            if token != x_api_key.strip(b" \t"):
                return None
        found = self._by_api_key.get(x_api_key)
        return found or self._remember(self._by_api_key, x_api_key, x_api_key.strip(b" \t"))

    def _add(self, name: str, scopes: frozenset[Scope], digest: bytes) -> None:
        if len(digest) != _DIGEST_BYTES:
            msg = f"token {name!r}: a SHA-256 digest has 64 hex digits"
            raise ValueError(msg)
        known = self._by_digest.get(digest)
        if known is not None:
            name, scopes = known.name, known.scopes | scopes
        self._by_digest[digest] = Principal(name, scopes)

    def _remember(self, seen: dict[bytes, Principal], raw: bytes, token: bytes | None) -> Principal | None:
        if not token or len(token) > _LONGEST:
            return None
        found = self._by_digest.get(sha256(token).digest())
        if found is not None:
            if len(seen) >= _REMEMBERED:
                seen.clear()
            seen[raw] = found
        return found


def _bearer(authorization: bytes) -> bytes | None:
    scheme, _, token = authorization.partition(b" ")
    return token.strip(b" \t") if scheme.lower() == b"bearer" else None
