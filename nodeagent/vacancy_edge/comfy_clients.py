"""Whose client id is whose: a ComfyUI client id is a secret that opens its owner's progress and previews.

Invariant: at any time a client id of a server belongs to one borrower, and only that one submits or listens
with it. The failure this prevents: whoever opens `/ws` with somebody's client id takes the place of their
socket. Rejected: replacing a foreign id in silence, which leaves a borrower waiting for progress that never
comes; and binding ids for good, which a borrower could use to deny them to others.

An id is free again an hour after its last use, unless a tunnel is still open. Each borrower has so many of
them; past that, the one that was used longest ago is forgotten, and only of that borrower.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote

from vacancy_edge import refusals

if TYPE_CHECKING:
    from collections.abc import Hashable

    from vacancy_edge.refusal import Refusal

IDLE_S: Final = 3600.0
MOST_OF_ONE: Final = 256
"""Ids of one borrower."""
MAX_CLIENT_ID: Final = 256


@dataclass(slots=True)
class _Claim:
    borrower: str
    used: float
    tunnels: int = 0


class ClientIds:
    """The client ids in use. `server` is anything that tells one server from another; times in seconds."""

    def __init__(self) -> None:
        self._claims: dict[tuple[Hashable, str], _Claim] = {}
        self._of: dict[str, dict[tuple[Hashable, str], None]] = {}

    def claim(self, server: Hashable, client_id: str, borrower: str, now: float) -> bool:
        """Use an id; False: it is another borrower's."""
        key = (server, client_id)
        found = self._claims.get(key)
        if found is not None and found.borrower != borrower:
            if found.tunnels or now - found.used < IDLE_S:
                return False
            self._forget(key)
            found = None
        if found is None:
            self._make_room(borrower)
            found = self._claims[key] = _Claim(borrower, now)
        found.used = now
        mine = self._of.setdefault(borrower, {})
        mine.pop(key, None)
        mine[key] = None  # the last in order is the one used last
        return True

    def opened(self, server: Hashable, client_id: str) -> None:
        """A tunnel began whose id was claimed."""
        found = self._claims.get((server, client_id))
        if found is not None:
            found.tunnels += 1

    def closed(self, server: Hashable, client_id: str, now: float) -> None:
        """A tunnel that `opened` told of has ended."""
        found = self._claims.get((server, client_id))
        if found is not None and found.tunnels:
            found.tunnels -= 1
            found.used = now

    def _make_room(self, borrower: str) -> None:
        mine = self._of.get(borrower, {})
        if len(mine) < MOST_OF_ONE:
            return
        idle = (key for key in mine if not self._claims[key].tunnels)
        self._forget(next(idle, next(iter(mine))))

    def _forget(self, key: tuple[Hashable, str]) -> None:
        claim = self._claims.pop(key)
        mine = self._of[claim.borrower]
        del mine[key]
        if not mine:
            del self._of[claim.borrower]


def client_in(query: bytes | None, name: str) -> str | None | Refusal:
    """The client id in a query, under the parameter `name`; None: it has none, so that the server makes one.

    A query in which two servers could find two ids is refused.
    """
    if not query:
        return None
    text = query.decode("latin-1")
    if unquote(text).lower().count(name.lower()) > 1 or ";" in text or not text.isascii():
        return refusals.ambiguous_body(f"Send the query parameter {name} once.")
    try:
        pairs = dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=16))
    except ValueError:
        return refusals.bad_request("The query cannot be read.")
    client_id = pairs.get(name, "")
    if len(client_id) > MAX_CLIENT_ID:
        return refusals.bad_request(f"The query parameter {name} is too long.")
    return client_id or None


def foreign_client(client_id: str) -> Refusal:
    """400: the id is another borrower's."""
    return refusals.bad_request(
        f"The client id {refusals.shown(client_id)} is in use by another borrower, "
        "whose progress it opens. Use one of your own: a random UUID."
    )
