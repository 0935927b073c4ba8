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
    from vacancy_agent.core.owner_load import LoadSample
    from vacancy_agent.core.pressure import PressureEdge
    from vacancy_agent.core.veto import Edge
    from vacancy_agent.proxy.host import Journalist
    from vacancy_agent.reclaim.runner import ReclaimRunner
    from vacancy_agent.wiring.pressure import PressureWatch


class Readings:
    """The sink of every collector."""

    def __init__(
        self,
        board: Board,
        reclaim: ReclaimRunner,
        clock: Clock,
        tell: Journalist,
        changed: Callable[[], None],
        pressure: PressureWatch,
    ) -> None:
        self._board = board
        self._reclaim = reclaim
        self._clock = clock
        self._tell = tell
        self._changed = changed
        self._pressure = pressure
        self.on_wake: list[Callable[[], None]] = []
        """For whoever has connections that do not outlive a sleep."""

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

    def set_pressure(self, resource: str, sample: LoadSample) -> None:
        """What came of looking whose load a resource has."""
        now, before = self._clock.now(), self._board.pressure.get(resource)
        edge = self._pressure.observe(resource, sample, now)
        if edge is not None:
            self._pressed(resource, edge, now)
        self._reclaim.recheck(self._board, now)
        if self._board.pressure.get(resource) is not before:
            self._changed()

    def tick(self) -> None:
        """Every poll: readings that grew too old."""
        now = self._clock.now()
        self._edge(self._board.tick(now), now)
        for resource, edge in self._pressure.tick(now):
            self._pressed(resource, edge, now)
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
        self._pressure.outdate()
        self._tell("resumed")
        self._reclaim.tick()  # a timer stands still in a sleep, a deadline does not
        self._changed()
        for wake in self.on_wake:
            wake()

    def _pressed(self, resource: str, edge: PressureEdge, now: Instant) -> None:
        self._tell("owner's load takes back", resource=resource, why=edge.why)
        self._reclaim.resource_pressed(resource, self._board, now)

    def _edge(self, edge: Edge | None, now: Instant) -> None:
        if edge is None:
            return
        if edge.direction is Direction.RISING:
            self._reclaim.owner_returned(now)
        self._tell(
            "owner veto", state="engaged" if edge.direction is Direction.RISING else "released", why=edge.why
        )
