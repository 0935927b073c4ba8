"""The gate with a memory, for the path of a request.

Invariant: it answers as `gate.decide` would, at every moment (a property test compares them). A verdict is
kept while the board's version stands, until the first reading it rests on can grow too old, and never longer
than a second, so that a stepped wall clock is noticed by pauses and schedules. Rejected: recomputing on
every write of the board, which pays for requests that never come.

Usage: `Gate(board).decide(Ask(upstream, model, prior), now, wall)`; hand the same `prior` object in while it
did not change (`Priors.of` does).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Ready
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
    admits: dict[str | None, tuple[Mapping[str, MiB] | None, Admit]]


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
        name, model, prior = ask
        kept = self._kept.get(name)
        if kept is None or kept.version != self._board.version or now >= kept.until:
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
        if kept is None or kept.version != self._board.version or now >= kept.until:
            return None
        hit = kept.admits.get(model)
        return None if hit is None or hit[0] is not None else hit[1]

    def _renew(self, name: str, now: Instant, wall: WallTime) -> _Kept | Refuse:
        board = self._board
        upstream = board.settings.upstreams[name]
        refused = standing(board, upstream, now, wall)
        if refused is not None:
            self._kept.pop(name, None)
            return refused
        kept = self._kept[name] = _Kept(board.version, _holds_until(board, upstream, now, wall), {})
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
        return verdict


def _holds_until(board: Board, upstream: UpstreamSettings, now: Instant, wall: WallTime) -> float:
    """When an admission by steps 1 to 5 can first turn, if nothing is written to the board."""
    bound = board.settings.sampling.stale_after
    ages = [board.capacity[name] for name in upstream.requires]
    times = [reading.at + bound for reading in ages if isinstance(reading, Ready)]
    if upstream.owner_scope is OwnerScope.HOST and isinstance(board.presence, Ready):
        times.append(board.presence.at + bound)
    return min(now + KEPT_FOR, now + (board.lending(wall).changes_at - wall), *times)
