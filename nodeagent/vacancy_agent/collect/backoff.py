"""When to leave a program alone that keeps hanging."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Instant, Seconds

if TYPE_CHECKING:
    from vacancy_agent.clock import Clock

_PATIENCE = 3  # deadlines missed in a row before it is left alone
_FIRST = 30.0
_LONGEST = 300.0


class Backoff:
    """After three deadlines missed in a row, a pause of 30 s, doubled with each further one up to 300 s."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.missed = 0
        """Deadlines missed in a row."""
        self._until = Instant(0.0)

    def remaining(self) -> Seconds:
        """Seconds for which it is still to be left alone; 0.0 to go ahead."""
        if self.missed < _PATIENCE:
            return Seconds(0.0)
        return Seconds(max(0.0, self._until - self._clock.now()))

    def miss(self) -> None:
        """Note a missed deadline."""
        self.missed += 1
        pause = min(_LONGEST, _FIRST * 2 ** max(0, self.missed - _PATIENCE))
        self._until = Instant(self._clock.now() + pause)

    def reset(self) -> None:
        """Note an answer, or a machine that slept: what hung before may not any more."""
        self.missed = 0
