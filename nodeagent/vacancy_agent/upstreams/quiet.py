"""*Quiet*: a server's process tree that does nothing. Pure: samples in, a verdict out.

A server that does not tell whether it works is believed to have stopped when its process and everything below
it used less than 5 % of one core for 3 s, and no GPU where figures per process exist. (An Ollama runner that
computes for a client who left: 1.5 to 2 cores; an idle one: none.)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Instant, Seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vacancy_agent.core.facts import ProcessIdentity

WINDOW = Seconds(3.0)
STEP = Seconds(0.75)
"""Between two samples. Several in one window, so that a replaced process does not hide between the ends."""
MAX_GAP = Seconds(3.0)
"""Samples further apart (a machine that slept, a loop that stood still) do not belong to one window."""
CORE_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class TreeSample:
    """A process and everything below it at one moment."""

    at: Instant
    root: ProcessIdentity
    cpu: Mapping[ProcessIdentity, float]
    """Seconds of CPU used so far, ended and waited-for children included."""
    gpu: float | None = None
    """Percent of a GPU that the tree uses, where figures per process exist."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """Nothing was done from `began` on."""

    began: Instant


@dataclass(frozen=True, slots=True)
class Busy:
    """It works, or did a moment ago."""

    why: str


@dataclass(frozen=True, slots=True)
class TooShort:
    """Take another sample `STEP` later: the window is not complete."""


Verdict = Quiet | Busy | TooShort


def judge(samples: Sequence[TreeSample]) -> Verdict:
    """Judge the newest `WINDOW` of the samples, oldest first.

    1. A GPU in use in any sample of the window: busy, at once.
    2. CPU used since the window's first sample above the share: busy, at once (it can only grow).
    3. Window shorter than 3 s: too short.
    """
    window = _window(samples)
    used = sum(_used(before, after) for before, after in pairwise(window))
    if any(sample.gpu for sample in window):
        return Busy("its processes use the GPU")
    if used >= CORE_SHARE * WINDOW:
        elapsed = window[-1].at - window[0].at
        share = used / elapsed
        return Busy(f"its processes use {share:.2f} cores")
    if not window or window[-1].at - window[0].at < WINDOW:
        return TooShort()
    return Quiet(window[0].at)


def _window(samples: Sequence[TreeSample]) -> list[TreeSample]:
    """From the newest sample back to the first that completes the window; cut at a gap or another process."""
    window: list[TreeSample] = []
    for sample in reversed(samples):
        if window and (sample.root != window[-1].root or window[-1].at - sample.at > MAX_GAP):
            break
        window.append(sample)
        if window[0].at - sample.at >= WINDOW:
            break
    return window[::-1]


def _used(before: TreeSample, after: TreeSample) -> float:
    """CPU seconds between two samples. A process that came counts whole, one that went does in its parent."""
    return sum(max(seconds - before.cpu.get(process, 0.0), 0.0) for process, seconds in after.cpu.items())
