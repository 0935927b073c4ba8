"""What a request's head decides, kept for the next request with the same head.

Invariant: a plan holds only what follows from the head's own bytes and the configuration it was made under:
who asks, the route, what is dropped and added. What changes in between (presence, capacity, who holds a
slot, where the connection comes from) is never in it. Plans are thrown away when the configuration changes.

The engine hands out one object for all equal heads (`vacancy_http.head_memo`), so looking a plan up costs
less than the first of the steps that it saves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vacancy_dialects import Match
    from vacancy_edge import Principal
    from vacancy_http.request_parser import RequestHead

MOST_PLANS = 256


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Steps 1 and 2, done.

    Attributes:
        principal: who asks.
        borrower: name that the owner sees; the gateway's word where the gateway asks.
        match: what the route table says.
        is_work: the request is work: its body is judged, and the gate decides.
        is_judged: its body is judged before it is forwarded, which some reads need too.
        target: of the request line towards the upstream.
        drop, add: header fields that go, and that come.
        content_type: what the body is judged by.
    """

    principal: Principal
    borrower: str
    match: Match
    is_work: bool
    is_judged: bool
    target: bytes
    drop: frozenset[bytes]
    add: tuple[tuple[bytes, bytes], ...]
    content_type: bytes | None


class Plans:
    """The plans of one listener."""

    __slots__ = ("_generation", "_known")

    def __init__(self) -> None:
        self._known: dict[RequestHead, Plan] = {}
        self._generation = 0

    def get(self, head: RequestHead, generation: int) -> Plan | None:
        """The plan for this very head, if it was made under the configuration of this generation."""
        return self._known.get(head) if generation == self._generation else None

    def keep(self, head: RequestHead, generation: int, plan: Plan) -> None:
        """Keep a plan, in bounds."""
        if generation != self._generation or len(self._known) >= MOST_PLANS:
            self._known.clear()
            self._generation = generation
        self._known[head] = plan
