"""The only place where the operator reads a clock.

Invariant: ages are measured on a clock that counts suspend and that nobody sets; the wall clock is for what
people and tokens say.
"""

from __future__ import annotations

import sys
import time
from typing import Protocol

from vacancy_operator.core.facts import Instant, Now, Wall


class Clock(Protocol):
    """What the operator asks of time; tests drive their own."""

    def now(self) -> Now:
        """This moment on both clocks."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> Now:
        """This moment on both clocks."""
        return Now(_instant(), Wall(time.time()))  # noqa: TID251 - this is clock.py


if sys.platform == "linux":

    def _instant() -> Instant:
        return Instant(time.clock_gettime(time.CLOCK_BOOTTIME))

else:

    def _instant() -> Instant:
        return Instant(time.monotonic())  # noqa: TID251 - this is clock.py
