"""What to write to the LendingHost's status when: report and time in, verdict out. No clock, no I/O.

Invariant: a host writes on a change of state and not on a change of a sample. Every write is read by the
operator and stored by etcd, and five hundred hosts that sent each sample would be 170 writes a second of
nothing new. The option rejected is a fixed period: it is late where an owner returned, and writes for nothing
the rest of the day.

The rules, in this order:

1. One attempt a second on the average, whatever happened. An owner's return alone goes a second ahead of its
   turn, and what follows it waits two: it must be seen within a second, even just after another write.
2. Nothing was written yet, or what was written was changed by somebody: now.
3. The report is, once rounded, what was written: nothing.
4. Its state differs: now.
5. Its counts of work differ: `COUNTS_EVERY` after the last write. Short requests end as fast as they begin.
6. A number moved by more than a tenth: `NUMBERS_EVERY` after the last write.
7. Otherwise nothing; what is written for another reason carries the numbers along.

The jitter is a share of the longer pauses, drawn anew by the caller for each write, so that hosts which heard
of the same thing at the same time do not go on in step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vacancy_agent.core.facts import Instant

if TYPE_CHECKING:
    from collections.abc import Mapping

SPACING = 1.0
COUNTS_EVERY = 10.0
NUMBERS_EVERY = 300.0
JITTER = 0.1
"""The share of a pause that jitter may add."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number as measured, and how far another may be from it and still be the same."""

    value: float
    slack: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One report."""

    state: str
    """Everything whose change is to be known at once, as one text."""
    lends: bool
    """Whether it says that the host can be lent."""
    counts: str
    """How much work there is, as one text."""
    figures: Mapping[str, Figure]
    status: Mapping[str, Any]
    """What would be written, rounded."""


@dataclass(frozen=True, slots=True)
class Past:
    """What became of earlier reports."""

    turn: Instant | None = None
    """When it is our turn again; None: nothing was tried yet."""
    written: Snapshot | None = None
    """What the status holds; None: nothing of ours, or not known."""
    at: Instant = Instant(0.0)
    """When that was written."""


@dataclass(frozen=True, slots=True)
class Write:
    """Write it now."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now."""

    until: Instant | None
    """When it is to be written if it stays as it is; None: not at all."""


def decide(past: Past, report: Snapshot, now: Instant, jitter: float) -> Write | Wait:
    """Whether to write this report now.

    Args:
        past: what was written and tried before.
        report: how things are.
        now: the time.
        jitter: from 0 to 1, the same until the next write.
    """
    due = _due(past, report, now, jitter)
    if due is None:
        return Wait(None)
    if past.turn is not None:
        ahead = SPACING if past.written is not None and past.written.lends and not report.lends else 0.0
        due = max(due, past.turn - ahead)  # 1
    return Write() if due <= now else Wait(Instant(due))


def tried(past: Past, now: Instant) -> Past:
    """What is past once a write is tried now."""
    turn = now if past.turn is None else max(past.turn, now)
    return replace(past, turn=Instant(turn + SPACING))


def _due(past: Past, report: Snapshot, now: Instant, jitter: float) -> float | None:
    written, stretch = past.written, 1 + JITTER * jitter
    if written is None:  # 2
        return now
    if written.status == report.status:  # 3
        return None
    if written.state != report.state:  # 4
        return now
    if written.counts != report.counts:  # 5
        return past.at + COUNTS_EVERY * stretch
    if moved(written.figures, report.figures):  # 6
        return past.at + NUMBERS_EVERY * stretch
    return None  # 7


def moved(before: Mapping[str, Figure], after: Mapping[str, Figure]) -> bool:
    """Whether a number is further from what was written than its slack; which there are is state."""
    return any(
        name in before and abs(figure.value - before[name].value) > before[name].slack
        for name, figure in after.items()
    )
