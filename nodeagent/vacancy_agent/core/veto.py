"""The owner's veto: engages on one matching sample, releases only after a quiet time.

Invariant: while the veto is engaged, only a fresh clear reading can release it, and none does before
`release_after` seconds have passed since the last reading that matched. The failure this prevents is
flapping: an owner who pauses for a minute must not find the card lent out again. Rejected: counting clear
samples instead of seconds, which makes the quiet time depend on the poll interval.

A presence reading that grew too old engages the veto too, but it is not a match: nobody was seen. The first
fresh clear reading after such a gap therefore releases at once, unless a real match is still recent.

Usage: the board owns one `Veto` and feeds it; whoever called the board gets the edge as a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Evidence

if TYPE_CHECKING:
    from vacancy_agent.core.facts import Instant, Presence, Ready, Seconds


class Direction(StrEnum):
    """Which way the veto changed."""

    RISING = "rising"
    FALLING = "falling"


@dataclass(frozen=True, slots=True)
class Edge:
    """The veto changed at `at`. `why` is for the owner's own page and log."""

    direction: Direction
    at: Instant
    why: str


_CLEAR = frozenset({Evidence.ABSENT, Evidence.UNSUPPORTED})


class Veto:
    """Host-wide veto with hysteresis.

    Args:
        release_after: quiet time after the last match.
    """

    __slots__ = ("engaged", "last_match", "release_after", "since", "why")

    def __init__(self, release_after: Seconds) -> None:
        self.release_after = release_after
        self.engaged = False
        self.since: Instant | None = None
        """When the present state began; None: it is the one it started with."""
        self.last_match: Instant | None = None
        self.why = ""

    def observe(self, reading: Ready[Presence]) -> Edge | None:
        """Feed a fresh reading; returns the edge it caused, if any."""
        if reading.value.evidence is Evidence.PRESENT:
            self.last_match = reading.at
            return self._engage(reading.at, reading.value.why)
        if not self.engaged or reading.value.evidence not in _CLEAR or not self._quiet(reading.at):
            return None
        return self._change(Direction.FALLING, reading.at, reading.value.why)

    def lost_sight(self, now: Instant, why: str) -> Edge | None:
        """The presence reading is too old to trust: engage, without counting it as a match."""
        return self._engage(now, why)

    def _quiet(self, at: Instant) -> bool:
        return self.last_match is None or at - self.last_match >= self.release_after

    def _engage(self, at: Instant, why: str) -> Edge | None:
        if self.engaged:
            self.why = why
            return None
        return self._change(Direction.RISING, at, why)

    def _change(self, direction: Direction, at: Instant, why: str) -> Edge:
        self.engaged = direction is Direction.RISING
        self.since = at
        self.why = why
        return Edge(direction, at, why)
