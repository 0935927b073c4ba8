"""Runs a module under a sampling profiler: `profiled OUTPUT MODULE ARGUMENT...`.

Sampling begins at SIGUSR1, so that imports and start-up stay out, and takes the stack at every tick of
processor time that the kernel grants (4 ms on many). Rejected: cProfile, which made the agent three
times slower and small functions look large. Time in C counts where Python called it: a socket write
counts for the function that wrote.
"""

from __future__ import annotations

import json
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

EVERY_S = 0.001


class Sampler:
    """Counts functions: at the top of the stack, and anywhere in it."""

    def __init__(self) -> None:
        self.own: Counter[str] = Counter()
        self.inclusive: Counter[str] = Counter()
        self.samples = 0

    def begin(self, *_: object) -> None:
        """Start the timer."""
        signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)

    def sample(self, _number: int, frame: FrameType | None) -> None:
        """Take one stack."""
        if frame is None:
            return
        self.samples += 1
        self.own[_name(frame)] += 1
        seen: set[str] = set()
        walk: FrameType | None = frame
        while walk is not None:
            seen.add(_name(walk))
            walk = walk.f_back
        self.inclusive.update(seen)

    def write(self, path: Path) -> None:
        """Leave the counts for the benchmark to read."""
        content = {"samples": self.samples, "own": self.own, "inclusive": self.inclusive}
        path.write_text(json.dumps(content))


def _name(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__', '?')}:{frame.f_code.co_qualname}"


def main() -> None:
    """The profiled module sees the command line that it would have had."""
    output, module, *arguments = sys.argv[1:]
    sys.argv = [module, *arguments]
    sampler = Sampler()
    signal.signal(signal.SIGPROF, sampler.sample)
    signal.signal(signal.SIGUSR1, sampler.begin)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        sampler.write(Path(output))


if __name__ == "__main__":
    main()
