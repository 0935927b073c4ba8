"""Which ids of stored responses were handed to whom: who got one may read it again.

Invariant: an id belongs to the borrower whose reply named it first, and to nobody else; what the owner's own
programs stored was named in no reply here. Servers let clients choose such ids, so one that is known already
is not given to a second borrower. Rejected: to keep them over a restart; the server keeps its store in memory
too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_dialects.response_ids import ResponseIdWatch

if TYPE_CHECKING:
    from collections.abc import Hashable

    from vacancy_agent.proxy.host import Host
    from vacancy_dialects import Match
    from vacancy_http import Exchange

MOST = 1 << 13
"""Ids are forgotten past this many, the oldest first; each was as long as 128 characters at most."""


class OwnIds:
    """The ids, by server; a server is told from another by its target."""

    def __init__(self) -> None:
        self._borrowers: dict[tuple[Hashable, str], str] = {}

    def add(self, server: Hashable, response_id: str, borrower: str) -> None:
        """A reply to `borrower` named this id."""
        self._borrowers.setdefault((server, response_id), borrower)
        if len(self._borrowers) > MOST:
            del self._borrowers[next(iter(self._borrowers))]

    def opens(self, server: Hashable, match: Match, borrower: str) -> bool:
        """Whether a request is about an id that was handed to whoever sends it."""
        if match.route is None or not match.route.own_ids or not match.params:
            return False
        return self._borrowers.get((server, match.params[0].decode("latin-1"))) == borrower


def listen(host: Host, x: Exchange, server: Hashable, borrower: str, *, stream: bool) -> None:
    """Remember the id that a reply names, as it passes."""
    watch, before = ResponseIdWatch(stream=stream), x.tap

    def feed(piece: bytes) -> None:
        if before is not None:
            before(piece)
        watch.feed(piece)
        if watch.over:
            x.tap = before
            if watch.id is not None:
                host.own_ids.add(server, watch.id, borrower)

    x.tap = feed
