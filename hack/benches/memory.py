"""Memory and processor time of a process and its children, as the kernel accounts them."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from typing import Self


def tree(pid: int) -> list[int]:
    """The process and everything it started."""
    process = psutil.Process(pid)
    return [pid, *(child.pid for child in process.children(recursive=True))]


def shared_out(pid: int) -> int:
    """Bytes of the tree (PSS: a shared page counts once, however many map it)."""
    total = 0
    for member in tree(pid):
        with contextlib.suppress(OSError):
            rollup = Path(f"/proc/{member}/smaps_rollup").read_text()
            total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total * 1024


def cpu_seconds(pid: int) -> float:
    """Processor time of the process and its children so far."""
    times = [psutil.Process(member).cpu_times() for member in tree(pid)]
    return float(sum(spent.user + spent.system for spent in times))


def resident(pid: int) -> int:
    """Bytes resident of the one process."""
    return int(psutil.Process(pid).memory_info().rss)


class PeakWatch:
    """Takes `shared_out` again and again in a thread of its own, and keeps the largest."""

    def __init__(self, pid: int, *, every_s: float = 0.005) -> None:
        self._pid = pid
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(self._every_s):
            self.peak = max(self.peak, shared_out(self._pid))
