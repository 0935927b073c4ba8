"""Is lending allowed at all: the specification's switch, its schedule, the cluster's pause, the local pause.

Invariant: lending is allowed only while all four allow it; none of them can lift another. The failure this
prevents is a resume in the cluster that overrules the person in front of the machine, or the reverse.
Rejected: one `paused_until` that whoever wrote last wins.

A schedule window is an interval in real time: it opens when the zone's clock first shows `start` on that
day and closes when it first shows `end`. A time that the clock skips (start of summer time) is the moment of
the jump. Rejected: comparing clock faces, which closes and reopens a window in the repeated hour of autumn.

Usage: `Board.lending(wall)` keeps the answer until it can change; `lending()` computes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import WallTime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import time
    from zoneinfo import ZoneInfo

    from vacancy_agent.core.settings import LendingSettings, ScheduleWindow

LONGEST_HINT = 300
"""Seconds; the Retry-After where the end is further away or unknown."""
_DAYS_AHEAD = 8
"""A weekly window that is not open now opens within this many days."""


class By(StrEnum):
    """Who keeps lending off."""

    SPEC = "spec"
    CLUSTER = "cluster"
    LOCAL = "local"
    SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True)
class LocalPause:
    """The owner's pause at the machine. `until` None: until the owner resumes."""

    until: WallTime | None
    is_switch: bool = False
    """The machine's switch is off, which a resume leaves as it is."""


@dataclass(frozen=True, slots=True)
class Lending:
    """Whether lending is allowed at the asked moment, and if not, by whom it is held off.

    Where several hold it off, the one that ends last is named (unknown ends last of all).
    """

    by: By | None
    until: WallTime | None
    """When that one ends; None: unknown."""
    changes_at: WallTime
    """Until then the answer stays the same; may be infinite."""

    @property
    def allowed(self) -> bool:
        """Nothing holds lending off."""
        return self.by is None

    def retry_after(self, wall: WallTime) -> int:
        """Whole seconds to the end, 1 to 300; 300 when the end is unknown."""
        if self.until is None:
            return LONGEST_HINT
        return min(max(math.ceil(self.until - wall), 1), LONGEST_HINT)


def lending(settings: LendingSettings, pause: LocalPause | None, wall: WallTime) -> Lending:
    """Judge the four switches at `wall`.

    Raises:
        ZoneInfoNotFoundError: the schedule's time zone does not exist (configuration is checked before).
    """
    is_open, changes = _schedule(settings, wall)
    ends: list[tuple[By, float]] = []
    if not settings.enabled:
        ends.append((By.SPEC, math.inf))
    if settings.paused_until is not None and wall < settings.paused_until:
        ends.append((By.CLUSTER, settings.paused_until))
    if pause is not None and (pause.until is None or wall < pause.until):
        ends.append((By.LOCAL, math.inf if pause.until is None else pause.until))
    if not is_open:
        ends.append((By.SCHEDULE, changes))
    changes_at = WallTime(min([changes, *(end for _, end in ends)]))
    if not ends:
        return Lending(None, None, changes_at)
    by, end = max(ends, key=lambda item: item[1])
    return Lending(by, None if end == math.inf else WallTime(end), changes_at)


def _schedule(settings: LendingSettings, wall: WallTime) -> tuple[bool, float]:
    """Whether a window is open, and the next moment at which that may change (for a closed one: opens)."""
    if settings.windows is None:
        return True, math.inf
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - a MiB with what it loads, for those with a schedule

    zone = ZoneInfo(settings.time_zone)
    intervals = [span for window in settings.windows for span in _intervals(window, zone, wall)]
    is_open = any(start <= wall < end for start, end in intervals)
    bounds = (end if is_open else start for start, end in intervals)
    return is_open, min((bound for bound in bounds if bound > wall), default=math.inf)


def _intervals(window: ScheduleWindow, zone: ZoneInfo, wall: WallTime) -> Iterator[tuple[float, float]]:
    """The window's occurrences that can contain `wall` or come next."""
    today = datetime.fromtimestamp(wall, zone).date()
    for ahead in range(-2, _DAYS_AHEAD + 1):
        day = today + timedelta(days=ahead)
        if day.weekday() in window.days:
            last = day if window.end > window.start else day + timedelta(days=1)
            yield _moment(day, window.start, zone), _moment(last, window.end, zone)


def _moment(day: date, at: time, zone: ZoneInfo) -> float:
    """When the zone's clock first shows `at` on `day`, or jumps over it; seconds since the epoch."""
    local = datetime.combine(day, at, zone)
    first, second = local.timestamp(), local.replace(fold=1).timestamp()
    if second >= first:
        return first
    # The clock skips this time: PEP 495 gives an instant on either side of the jump, which lies between.
    before = zone.utcoffset(datetime.fromtimestamp(second, UTC).astimezone(zone))
    while first - second > 1:
        middle = (first + second) // 2
        if zone.utcoffset(datetime.fromtimestamp(middle, UTC).astimezone(zone)) == before:
            second = middle
        else:
            first = middle
    return first
