"""What a request's head decides, kept for the next request with the same head.

Invariant: a plan holds only what follows from the head's own bytes and the configuration it was made under:
who asks, the route, what is dropped and added. What changes in between (presence, capacity, who holds a
slot, where the connection comes from) is never in it. A plan counts only under the configuration it was made
under.

The engine hands out one object for all equal heads (`vacancy_http.head_memo`), and the plan is a note on it:
it is there as long as the head is remembered, and finding it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vacancy_dialects import Match
    from vacancy_edge import Principal


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Steps 1 and 2, done.

    Attributes:
        generation: of the configuration it was made under.
        principal: who asks.
        borrower: name that the owner sees; the gateway's word where the gateway asks.
        match: what the route table says.
        is_work: the request is work: its body is judged, and the gate decides.
        is_judged: its body is judged before it is forwarded, which some reads need too.
        target: of the request line towards the upstream.
        drop, add: header fields that go, and that come.
        content_type: what the body is judged by.
        untold: Content-Type of complete replies whose heads need no look: they prove that the work ended.
        barred: top-level keys of a body that `short.py` leaves to the full way; None: it leaves all of them.
        prefix: the head towards the upstream up to the digits of its length, for a request with a body.
    """

    generation: int
    principal: Principal
    borrower: str
    match: Match
    is_work: bool
    is_judged: bool
    target: bytes
    drop: frozenset[bytes]
    add: tuple[tuple[bytes, bytes], ...]
    content_type: bytes | None
    untold: bytes | None
    barred: frozenset[str] | None
    prefix: bytes
