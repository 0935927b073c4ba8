"""What a sample is worth once it is there.

Invariant: what was read before a suspend, or took so long that it says nothing about now, is no reading.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

from vacancy_agent.core.facts import Instant, Unknown

if TYPE_CHECKING:
    from vacancy_agent.core.facts import Reading, Seconds

T = TypeVar("T")


class Freshness:
    """The bounds that every loop of one agent shares."""

    def __init__(self, bound: Seconds) -> None:
        """`bound`: seconds a sample may take."""
        self._bound = bound
        self._resumed = Instant(-math.inf)

    def resumed(self, now: Instant) -> None:
        """The machine slept until `now`: samples that began before are discarded when they come."""
        self._resumed = now

    def judged(self, reading: Reading[T], began: Instant, ended: Instant) -> Reading[T]:
        """The reading, or that it is unknown because it came too late."""
        if began < self._resumed:
            return Unknown("the machine slept during the sample")
        if ended - began > self._bound:
            return Unknown(f"the sample took {ended - began:.0f} s, too long to say anything about now")
        return reading
