"""The gate with a memory, for the path of a request.

Invariant: it answers as `gate.decide` would, at every moment (a property test compares them). A verdict is
kept while the board's version stands, until the first reading it rests on can grow too old, and never longer
than a second, so that a stepped wall clock is noticed by pauses and schedules. Rejected: recomputing on
every write of the board, which pays for requests that never come.

A memory reading that is taken again, as after every last job of a resource, is looked at alone: the verdicts
stand while as much is free as the dearest of them needs. Whatever else happens, they are formed anew.

Usage: `Gate(board).decide(Ask(upstream, model, prior), now, wall)`; hand the same `prior` object in while it
did not change (`Priors.of` does).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import MemoryCapacity, Ready
from vacancy_agent.core.gate import footprint, standing
from vacancy_agent.core.settings import OwnerScope
from vacancy_agent.core.verdict import Admit, Refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_agent.core.board import Board
    from vacancy_agent.core.facts import Instant, MiB, WallTime
    from vacancy_agent.core.gate import Ask
    from vacancy_agent.core.settings import UpstreamSettings
    from vacancy_agent.core.verdict import Verdict

KEPT_FOR = 1.0
"""Seconds a verdict is kept at most."""
KEPT_MODELS = 64
"""Models whose admission is kept by upstream; names come from borrowers, so there must be a bound."""


@dataclass(slots=True)
class _Kept:
    """Steps 1 to 5 passed; true while the version stands and `until` has not come."""

    version: int
    until: float
    others: int
    """The board's version without what capacities added to it."""
    others_until: float
    """Until when they hold by everything but the capacities."""
    floor: float
    """MiB that each required resource must have free, so that every admission kept here stands."""
    admits: dict[str | None, tuple[Mapping[str, MiB] | None, Admit]] = field(default_factory=dict)


class Gate:
    """`decide` with a memory: while nothing changed, an admission costs one look-up.

    Only admissions are kept. A refusal carries seconds that run down, and is not the path to be fast on.
    """

    __slots__ = ("_board", "_kept")

    def __init__(self, board: Board) -> None:
        self._board = board
        self._kept: dict[str, _Kept] = {}

    def decide(self, ask: Ask, now: Instant, wall: WallTime) -> Verdict:
        """The same answer as `decide(board, ask, now, wall)`."""
        name, model, prior, _ = ask
        kept = self._kept.get(name)
        if kept is None or not self._stands(kept, name, now):
            fresh = self._renew(name, now, wall)
            if isinstance(fresh, Refuse):
                return fresh
            kept = fresh
        hit = kept.admits.get(model)
        if hit is not None and hit[0] is prior:
            return hit[1]
        return self._charge(kept, ask, now)

    def kept(self, upstream: str, model: str | None, now: Instant) -> Admit | None:
        """What `decide` would say of `Ask(upstream, model)`, where it is an admission that is remembered."""
        kept = self._kept.get(upstream)
        if kept is None:
            return None
        if kept.version == self._board.version:  # as `_stands`, in the path of every request
            if now >= kept.until:
                return None
        elif not self._stands(kept, upstream, now):
            return None
        hit = kept.admits.get(model)
        return None if hit is None or hit[0] is not None else hit[1]

    def _stands(self, kept: _Kept, upstream: str, now: Instant) -> bool:
        board = self._board
        version = board.version
        if kept.version == version:
            return now < kept.until
        if kept.others != version - board.capacity_writes or now >= kept.others_until:
            return False
        settings = board.settings
        oldest = kept.others_until
        for name in settings.upstreams[upstream].requires:
            reading = board.capacity[name]
            if not (
                isinstance(reading, Ready)
                and isinstance(reading.value, MemoryCapacity)
                and reading.value.free >= kept.floor
            ):
                return False
            oldest = min(oldest, reading.at + settings.sampling.stale_after)
        kept.version, kept.until = version, oldest
        return now < oldest

    def _renew(self, name: str, now: Instant, wall: WallTime) -> _Kept | Refuse:
        board = self._board
        upstream = board.settings.upstreams[name]
        refused = standing(board, upstream, now, wall)
        if refused is not None:
            self._kept.pop(name, None)
            return refused
        others = _holds_until(board, upstream, now, wall)
        kept = self._kept[name] = _Kept(
            board.version,
            min(others, *_capacities_until(board, upstream)),
            board.version - board.capacity_writes,
            others,
            max(board.settings.resources[one].min_free for one in upstream.requires),
        )
        return kept

    def _charge(self, kept: _Kept, ask: Ask, now: Instant) -> Verdict:
        board = self._board
        verdict = footprint(board, board.settings.upstreams[ask.upstream], ask, now)
        # A credit ages and falls with every job, without a new version: it is proved anew each time.
        if (
            isinstance(verdict, Admit)
            and ask.upstream not in board.residency
            and len(kept.admits) < KEPT_MODELS
        ):
            kept.admits[ask.model] = (ask.prior, verdict)
            kept.floor = max(kept.floor, verdict.charged)
        return verdict


def _holds_until(board: Board, upstream: UpstreamSettings, now: Instant, wall: WallTime) -> float:
    """When an admission by steps 1 to 4 can first turn, if nothing is written to the board."""
    bound = board.settings.sampling.stale_after
    times: list[float] = []
    if upstream.owner_scope is OwnerScope.HOST and isinstance(board.presence, Ready):
        times.append(board.presence.at + bound)
    return min(now + KEPT_FOR, now + (board.lending(wall).changes_at - wall), *times)


def _capacities_until(board: Board, upstream: UpstreamSettings) -> list[float]:
    """When each capacity that step 5 rests on grows too old."""
    bound = board.settings.sampling.stale_after
    readings = [board.capacity[name] for name in upstream.requires]
    return [reading.at + bound for reading in readings if isinstance(reading, Ready)]
