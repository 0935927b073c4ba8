"""Where the collectors' readings go: onto the board, and from its edges into the reclaim.

Invariant: the board is written before anything is cut, in one call: whoever asks the gate after an owner's
edge is refused, and only then do the borrowers' connections go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.core.veto import Direction

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_agent.clock import Clock
    from vacancy_agent.core.board import Board
    from vacancy_agent.core.facts import Capacity, Instant, Presence, Reading
    from vacancy_agent.core.veto import Edge
    from vacancy_agent.proxy.host import Journalist
    from vacancy_agent.reclaim.runner import ReclaimRunner


class Readings:
    """The sink of every collector."""

    def __init__(
        self,
        board: Board,
        reclaim: ReclaimRunner,
        clock: Clock,
        tell: Journalist,
        changed: Callable[[], None],
    ) -> None:
        self._board = board
        self._reclaim = reclaim
        self._clock = clock
        self._tell = tell
        self._changed = changed

    def set_capacity(self, resource: str, reading: Reading[Capacity]) -> None:
        """A new reading of a resource."""
        self._board.set_capacity(resource, reading)
        self._changed()

    def set_presence(self, reading: Reading[Presence]) -> None:
        """A new presence reading."""
        now = self._clock.now()
        self._edge(self._board.set_presence(reading, now), now)
        self._reclaim.recheck(self._board, now)
        self._changed()

    def tick(self) -> None:
        """Every poll: a presence reading that grew too old."""
        now = self._clock.now()
        self._edge(self._board.tick(now), now)
        self._reclaim.recheck(self._board, now)
        self._changed()

    def suspending(self, now: Instant) -> None:
        """The machine is about to sleep."""
        self._board.suspending()
        self._tell("suspending")
        self._reclaim.recheck(self._board, now)
        self._changed()

    def resumed(self, now: Instant) -> None:
        """It slept."""
        self._board.resumed(now)
        self._tell("resumed")
        self._changed()

    def _edge(self, edge: Edge | None, now: Instant) -> None:
        if edge is None:
            return
        if edge.direction is Direction.RISING:
            self._reclaim.owner_returned(now)
        self._tell(
            "owner veto", state="engaged" if edge.direction is Direction.RISING else "released", why=edge.why
        )
