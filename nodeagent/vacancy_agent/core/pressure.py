"""The pressure guard of one resource: engages on sustained load, releases after sustained quiet.

Invariant: only what was seen counts. Load that was not sampled neither builds up nor releases; a reading that
stays away refuses at once, and takes back what runs only after `max_gap`, so that one missed sample cuts
nobody. The failure this prevents is a game that stutters because its load was read once in a minute, and a
borrower who is cut because one probe was late. Rejected: an average over a window, which hides a short stop
in the load from the owner's side and the moment of a change from everybody.

The rules, numbered alike in the code:

1. At or above the threshold without a break for `engage_after`: engaged, and an edge.
2. Below it without a break for `release_after`: released.
3. Valid samples further apart than `max_gap` break both.
4. A missed sample breaks only the release (quiet that nobody saw is no quiet), and makes the load unknown.
5. Unknown for `max_gap`, counted from the last good sample: an edge, once.
6. A valid sample ends the unknown time without an edge, unless it comes later than `max_gap`, finds the guard
   engaged, or has no calibrated threshold.
7. Suspended (a total load while borrowed work is part of it): state and build-up stay as they are, no edge.

Usage: one `Guard` for each resource; feed every answer of its probe, each in the order of time, and call
`missed` too when no answer came. The edge goes to `core.reclaim`, the state onto the board.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vacancy_agent.core.board import Pressure
from vacancy_agent.core.facts import Seconds

if TYPE_CHECKING:
    from vacancy_agent.core.facts import Instant, Percent

LEAST_GAP = Seconds(20.0)
_GAP_POLLS = 3


def max_gap(pressure_interval: Seconds) -> Seconds:
    """How long samples may be apart and still be one observation: three polls, and at least 20 s."""
    return Seconds(max(LEAST_GAP, _GAP_POLLS * pressure_interval))


@dataclass(frozen=True, slots=True)
class PressureEdge:
    """The owner's load takes back what runs. `why` is for logs and refusals."""

    at: Instant
    why: str
    unknown_for: Seconds | None = None
    """Where the load could not be read: for how long."""


class Guard:
    """Hysteresis over the load of one resource."""

    def __init__(self, engage_after: Seconds, release_after: Seconds, gap: Seconds) -> None:
        """`gap`: `max_gap` of the host."""
        self._engage_after = engage_after
        self._release_after = release_after
        self._max_gap = gap
        self._engaged = False
        self._calibrated = False
        self._unknown = True
        self._suspended = False
        self._raised = False
        """The edge of rule 5 was raised since the last good sample."""
        self._valid_at: Instant | None = None
        self._good_at: Instant | None = None
        """The last answer that was valid or suspended."""
        self._above: Instant | None = None
        self._below: Instant | None = None

    @property
    def state(self) -> Pressure:
        """What the gate is told."""
        if self._unknown:
            return Pressure.UNKNOWN
        if not self._calibrated:
            return Pressure.CALIBRATING
        if self._engaged:
            return Pressure.ENGAGED
        return Pressure.CLEAR if self._above is None else Pressure.BUILDING

    @property
    def suspended(self) -> bool:
        """The last answer could not be judged because borrowed work was part of it."""
        return self._suspended

    def sample(
        self, load: Percent, threshold: Percent, at: Instant, *, calibrated: bool = True
    ) -> PressureEdge | None:
        """A valid sample of the owner's load, taken at `at`; returns the edge it caused."""
        if self._valid_at is not None and at - self._valid_at > self._max_gap:  # 3
            self._above = self._below = None
        was_engaged = self._engaged
        self._follow(at, high=load >= threshold)
        rose = self._engaged and not was_engaged
        returned = self._returned(at, calibrated=calibrated)
        self._calibrated = calibrated
        self._valid_at = at
        self._good(at)
        if rose:
            return PressureEdge(at, "the owner's load reached the threshold")
        return returned

    def missed(self, now: Instant) -> PressureEdge | None:
        """No answer, or none that can be used; returns the edge of rule 5 when it is due."""
        self._below = None  # 4
        self._unknown = True
        self._suspended = False
        if self._good_at is None or self._raised or now - self._good_at < self._max_gap:
            return None
        self._raised = True  # 5
        gone = Seconds(now - self._good_at)
        return PressureEdge(now, f"the owner's load has been unknown for {gone:.0f} s", gone)

    def suspend(self, at: Instant) -> None:
        """A total load that contains borrowed work: it was read, but says nothing about the owner."""
        if self._valid_at is not None:  # 7
            self._below = None
            self._good(at)
        self._suspended = True

    def outdate(self) -> None:
        """The machine slept: what was seen before says nothing about now."""
        self._above = self._below = None
        self._unknown = True

    def overdue(self, now: Instant) -> bool:
        """Whether no good sample came for `max_gap` after the last, so that `missed` has to be told."""
        return self._good_at is not None and not self._raised and now - self._good_at >= self._max_gap

    def unknown_for(self, now: Instant) -> Seconds | None:
        """How long the load has been unknown; None: it is known, or never was."""
        return None if not self._unknown or self._good_at is None else Seconds(now - self._good_at)

    def _follow(self, at: Instant, *, high: bool) -> None:
        if high:
            self._below = None
            self._above = at if self._above is None else self._above
            self._engaged |= at - self._above >= self._engage_after  # 1
            return
        self._above = None
        self._below = at if self._below is None else self._below
        if at - self._below >= self._release_after:  # 2
            self._engaged = False

    def _returned(self, at: Instant, *, calibrated: bool) -> PressureEdge | None:
        """Rule 6. What the edge of rule 5 has told already is not told again."""
        if self._good_at is None or not self._unknown or self._raised:
            return None
        gone = Seconds(at - self._good_at)
        if gone <= self._max_gap and calibrated and not self._engaged:
            return None
        return PressureEdge(at, f"the owner's load was unknown for {gone:.0f} s", gone)

    def _good(self, at: Instant) -> None:
        self._unknown = self._raised = self._suspended = False
        self._good_at = at
