"""What the agent knows, and what it knows that it does not know.

Invariant: a reading that failed is `Unknown`, never a plausible number. A zero in here was measured. The
option rejected was `float | None`: it lets `or 0` slip in, and says neither why nor when.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NewType, TypeVar

Instant = NewType("Instant", float)
"""Seconds on the clock that counts suspend (CLOCK_BOOTTIME). Only differences mean anything."""
WallTime = NewType("WallTime", float)
"""Seconds since the Unix epoch: for what people wrote down (pauses, schedules), never for intervals."""
Seconds = NewType("Seconds", float)
MiB = NewType("MiB", int)
Percent = NewType("Percent", float)

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Unknown:
    """No reading: not taken yet, or the last attempt failed. `why` is for people."""

    why: str


@dataclass(frozen=True, slots=True)
class Ready(Generic[T_co]):
    """A reading taken at `at`; it may still be too old, which only a comparison with `now` can tell."""

    value: T_co
    at: Instant


@dataclass(frozen=True, slots=True)
class Stale(Generic[T_co]):
    """The last reading, known to be outdated (machine slept, taken before the last job ended)."""

    value: T_co
    at: Instant
    why: str


Reading = Unknown | Ready[T_co] | Stale[T_co]


@dataclass(frozen=True, slots=True)
class MemoryCapacity:
    """Memory of a GPU or of the host as measured: `free` was read, never computed as total minus used."""

    free: MiB
    total: MiB
    utilization: Percent | None = None


@dataclass(frozen=True, slots=True)
class CpuCapacity:
    """Load of the host's processors, 0 to 100."""

    utilization: Percent


Capacity = MemoryCapacity | CpuCapacity


class Evidence(StrEnum):
    """What a presence sample says about the owner."""

    ABSENT = "absent"
    """Nobody is at the machine."""
    PRESENT = "present"
    """The owner is at the machine: engages the veto."""
    UNCLEAR = "unclear"
    """A session is there that cannot be read clearly: refuses (step 3), does not engage the veto."""
    UNSUPPORTED = "unsupported"
    """The platform has no backend (macOS): does not refuse."""


@dataclass(frozen=True, slots=True)
class Presence:
    """One presence sample. `why` names the cause for people; it never carries a user's or a window's name."""

    evidence: Evidence
    why: str
    hint_missing: bool = False
    """A desktop counted that has never set its idle hint while it was watched for an hour."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process, told from a later one that was given the same number."""

    pid: int
    started: float
    """When it started, on whatever clock the platform keeps for it: compared for equality."""
