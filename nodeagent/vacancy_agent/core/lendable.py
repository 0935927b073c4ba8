"""Lendable: would a request be admitted now, the lender's own work aside?

Invariant: borrowed work never makes its own host unlendable. It ignores the ledger, the wait for a sample,
and what borrowed work occupies: while work holds a resource, the capacity verdict is the last one before.
The failure this prevents is a host that leaves its Service with every request it takes. Rejected: adding the
borrowed work's measured memory back to what is free, which guesses whose memory it is.

Usage: `lendable(board, upstream, now, wall)` for endpoints and pools, `host_lendable` for the condition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import MemoryCapacity, Ready
from vacancy_agent.core.gate import allowed, owner, resources, short
from vacancy_agent.core.residency import residency
from vacancy_agent.core.verdict import Refuse
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from vacancy_agent.core.board import Board
    from vacancy_agent.core.facts import Capacity, Instant, Reading, WallTime
    from vacancy_agent.core.gate import CapacityView
    from vacancy_agent.core.settings import UpstreamSettings


@dataclass(frozen=True, slots=True)
class Lendable:
    """Whether a request would be admitted, the lender's own work aside."""

    refusal: Refuse | None

    @property
    def yes(self) -> bool:
        """A request would be admitted."""
        return self.refusal is None

    @property
    def reason(self) -> str:
        """Reason of the condition, in CamelCase."""
        return "WouldAdmit" if self.refusal is None else self.refusal.reason.camel


def lendable(board: Board, name: str, now: Instant, wall: WallTime) -> Lendable:
    """The gate for one upstream without the ledger, the wait for a sample, and what borrowed work occupies.

    Which model a request would name is unknown: the one with the smallest footprint stands for all.
    """
    upstream = board.settings.upstreams[name]

    def view(resource: str) -> Reading[Capacity]:
        return board.capacity_aside(resource, now)

    return Lendable(
        allowed(board, wall)
        or owner(board, upstream, now)
        or resources(board, upstream, now, view)
        or _smallest(board, upstream, now, view)
    )


def _smallest(board: Board, upstream: UpstreamSettings, now: Instant, view: CapacityView) -> Refuse | None:
    """Step 6 for the model that needs least."""
    wanted = min((upstream.default_footprint, *upstream.footprints.values()), key=lambda f: f.min_free)
    need = wanted.min_free
    if residency(board, upstream, now).credited:
        need = min(need, wanted.resident_min_free)
    for name in upstream.requires:
        reading = view(name)
        if (
            isinstance(reading, Ready)
            and isinstance(reading.value, MemoryCapacity)
            and reading.value.free < need
        ):
            return short(name, reading.value.free, need, 6)
    return None


def host_lendable(board: Board, now: Instant, wall: WallTime) -> Lendable:
    """Whether any upstream is lendable; otherwise the refusal of the earliest step, the widest cause."""
    answers = [lendable(board, name, now, wall) for name in board.settings.upstreams]
    refusals = [answer.refusal for answer in answers if answer.refusal is not None]
    if len(refusals) < len(answers):
        return Lendable(None)
    if not refusals:
        return Lendable(Refuse(Reason.RESOURCE_DISABLED, 300, {"why": "no upstream is configured"}, 5))
    return Lendable(min(refusals, key=lambda refusal: refusal.step))
