"""A clock that a test drives."""

from __future__ import annotations

from vacancy_agent.clock import SystemClock
from vacancy_agent.core.facts import Instant, Seconds, WallTime


class FakeClock:
    """Stands still until it is told to go on; `sleep` moves all clocks but the one that stops in suspend."""

    def __init__(self, start: float = 1000.0) -> None:
        self._now = start
        self._awake = start
        self._wall = 1_700_000_000.0

    def now(self) -> Instant:
        return Instant(self._now)

    def awake(self) -> Seconds:
        return Seconds(self._awake)

    def wall(self) -> WallTime:
        return WallTime(self._wall)

    def advance(self, seconds: float) -> None:
        """Time passes while the machine is awake."""
        self._awake += seconds
        self.sleep(seconds)

    def sleep(self, seconds: float) -> None:
        """Time passes while the machine sleeps."""
        self._now += seconds
        self._wall += seconds


class AheadClock(SystemClock):
    """The machine's clocks, put on by a test: it can let a day pass in an instant, awake or asleep."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._slept = 0.0

    def now(self) -> Instant:
        return Instant(super().now() + self._ahead + self._slept)

    def awake(self) -> Seconds:
        return Seconds(super().awake() + self._ahead)

    def wall(self) -> WallTime:
        return WallTime(super().wall() + self._ahead + self._slept)

    def advance(self, seconds: float) -> None:
        self._ahead += seconds

    def sleep(self, seconds: float) -> None:
        """Time passes while the machine sleeps."""
        self._slept += seconds
