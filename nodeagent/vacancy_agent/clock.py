"""The only place where the agent reads a clock.

Invariant: ages are measured on a clock that counts suspend. On one that stops while the machine sleeps, a
presence reading from before a night's sleep looks a second old in the morning, and work would be admitted on
it. The rejected option is the wall clock, which jumps whenever somebody or NTP sets it.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol, cast

from vacancy_agent.core.facts import Instant, Seconds, WallTime

if TYPE_CHECKING:
    from collections.abc import Callable

# To make a named type is a call, and every request reads both clocks: the functions count as making them.
if sys.platform == "linux":
    _boottime = cast("Callable[[int], Instant]", time.clock_gettime)
_walltime = cast("Callable[[], WallTime]", time.time)  # noqa: TID251 - this is clock.py
_CERTAIN_SLEEP = 0.1  # seconds; shorter sleeps are not told from a slow pair of clock reads


class Clock(Protocol):
    """What the agent asks of time; tests drive their own."""

    def now(self) -> Instant:
        """Seconds on the clock that counts suspend; only differences mean anything."""
        ...

    def awake(self) -> Seconds:
        """Seconds on CLOCK_MONOTONIC, which stands still during suspend; logind's idle times are on it."""
        ...

    def wall(self) -> WallTime:
        """Seconds since the Unix epoch: for what people wrote down, never for intervals."""
        ...


class SystemClock:
    """The machine's clocks: CLOCK_BOOTTIME on Linux.

    Elsewhere `now` is Python's monotonic clock, which on macOS stands still during sleep and on Windows
    counts it. There only the platform's own events tell of a sleep: `SuspendWatch` sees one clock, not two.
    """

    if sys.platform == "linux":

        def now(self) -> Instant:
            """Seconds since boot, suspend included."""
            return _boottime(time.CLOCK_BOOTTIME)

    else:

        def now(self) -> Instant:
            """Seconds on the monotonic clock."""
            return Instant(time.monotonic())  # noqa: TID251 - this is clock.py

    def awake(self) -> Seconds:
        """Seconds on the clock that stands still during suspend."""
        return Seconds(time.monotonic())  # noqa: TID251 - this is clock.py

    def wall(self) -> WallTime:
        """Seconds since the Unix epoch."""
        return _walltime()


class SuspendWatch:
    """Tells that the machine slept from the drift between the two clocks, without any event.

    The two clocks cannot be read at one instant, so each look yields an interval in which their difference
    lies. A sleep is reported only when the new interval lies wholly above the old one: a process that was
    merely not scheduled between two reads is not taken for a machine that slept.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ceiling = self._difference()[1]

    def slept(self) -> Seconds:
        """Seconds the machine certainly slept since the last call; 0.0 for none, or for less than 0.1 s."""
        low, high = self._difference()
        slept = low - self._ceiling
        if slept > _CERTAIN_SLEEP:
            self._ceiling = high
            return Seconds(slept)
        self._ceiling = min(self._ceiling, high)
        return Seconds(0.0)

    def _difference(self) -> tuple[float, float]:
        before = self._clock.awake()
        now = self._clock.now()
        after = self._clock.awake()
        return now - after, now - before
