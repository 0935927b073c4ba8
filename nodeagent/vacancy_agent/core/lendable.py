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

from vacancy_agent.core.facts import MemoryCapacity, MiB, Ready
from vacancy_agent.core.gate import allowed, owner, resources, short, wanted_by
from vacancy_agent.core.residency import GPU, KEEPS_FOR
from vacancy_agent.core.shown import ModelsShown, PoolShown, SlotsShown
from vacancy_agent.core.verdict import Refuse
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_agent.core.board import Board
    from vacancy_agent.core.facts import Capacity, Instant, Reading, WallTime
    from vacancy_agent.core.gate import CapacityView
    from vacancy_agent.core.settings import Footprint, UpstreamSettings


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
    need, added = _credited(board, upstream, now, wanted)
    for name in upstream.requires:
        reading = view(name)
        if isinstance(reading, Ready) and isinstance(reading.value, MemoryCapacity):
            free = reading.value.free
            if board.settings.resources[name].type in GPU:
                free = MiB(free + added)
            if free < need:
                return short(name, free, need, 6)
    return None


def _credited(board: Board, upstream: UpstreamSettings, now: Instant, smallest: Footprint) -> tuple[MiB, MiB]:
    """What the request that is credited most would need, and what would be added to the card's free memory.

    The observation may be as old as a capacity reading: this admits nothing, and a host that comes and goes
    between two looks at its upstream is of no use. A llamacpp server is not even looked at while nobody works
    (its own sleep would never come), and holds its model for life.
    """
    full, nothing = smallest.min_free, MiB(0)
    reading = board.residency.get(upstream.name)
    if not isinstance(reading, Ready):
        return full, nothing
    shown = reading.value
    if isinstance(shown, SlotsShown):
        return (min(full, smallest.resident_min_free) if shown.held else full), nothing
    if now - reading.at > board.settings.sampling.stale_after:
        return full, nothing
    if isinstance(shown, PoolShown):
        return full, shown.held or nothing
    return min([full, *_kept(upstream, shown, now)]), nothing


def _kept(upstream: UpstreamSettings, shown: ModelsShown, now: Instant) -> list[MiB]:
    """The resident needs of the models that stay long enough to be credited."""
    stay = [one.name for one in shown.models if one.expires is not None and one.expires - now >= KEEPS_FOR]
    return [wanted_by(upstream, name).resident_min_free for name in stay]


def host_lendable(
    board: Board, now: Instant, wall: WallTime, bound: Callable[[str], bool] = lambda _name: True
) -> Lendable:
    """Whether any upstream is lendable; otherwise the refusal of the earliest step, the widest cause.

    Args:
        board: what is known.
        now: on the clock that counts suspend.
        wall: for switches.
        bound: whether an upstream's proxy listens; what nobody can reach is not lent.
    """
    answers = {name: lendable(board, name, now, wall) for name in board.settings.upstreams}
    lends = [name for name, answer in answers.items() if answer.yes]
    if lends:
        return Lendable(None if any(map(bound, lends)) else _UNREACHABLE)
    refusals = [answer.refusal for answer in answers.values() if answer.refusal is not None]
    if not refusals:
        return Lendable(Refuse(Reason.RESOURCE_DISABLED, 300, {"why": "no upstream is configured"}, 5))
    return Lendable(min(refusals, key=lambda refusal: refusal.step))


_UNREACHABLE = Refuse(Reason.UPSTREAM_UNAVAILABLE, 5, {"why": "no proxy listens"}, 8)
