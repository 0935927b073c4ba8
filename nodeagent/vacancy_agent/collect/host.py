"""Memory and processors of the host.

Invariant: a processor load covers at least half a second. psutil's own first answer is 0.0, and two calls a
millisecond apart are noise; either would admit work on a busy machine. The counters are read here instead,
and the load is the difference to counters that are old enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from vacancy_agent.core.facts import CpuCapacity, Instant, MemoryCapacity, MiB, Percent, Ready, Unknown
from vacancy_agent.platform.memory import memory_reader

if TYPE_CHECKING:
    from vacancy_agent.clock import Clock
    from vacancy_agent.core.facts import Capacity, Reading

_WINDOW = 0.5  # seconds that a load covers at least
_BYTES = 1 << 20
_UNREADABLE = (OSError, ValueError, RuntimeError)
"""What reading /proc may raise: no descriptor free is enough."""


@dataclass(frozen=True, slots=True)
class _Counters:
    at: Instant
    busy: float
    total: float


class HostProbe:
    """Reads the host at once, without blocking: both come from the kernel's memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._read_memory = memory_reader()
        self._newest = self._base = self._first()

    def memory(self) -> Reading[Capacity]:
        """Memory that programs can have without swapping, MiB: MemAvailable on Linux."""
        at = self._clock.now()
        try:
            memory = self._read_memory()
        except _UNREADABLE as error:
            return Unknown(f"the host's memory cannot be read: {error}")
        return Ready(MemoryCapacity(MiB(memory.available // _BYTES), MiB(memory.total // _BYTES)), at)

    def cpu(self) -> Reading[Capacity]:
        """Load of all processors over half a second or longer, percent; waiting for a disk is no load."""
        try:
            now = self._counters()
        except _UNREADABLE as error:
            return Unknown(f"the counters of the processors cannot be read: {error}")
        if now.at - self._newest.at >= _WINDOW:
            self._base, self._newest = self._newest, now
        elif now.at - self._base.at < _WINDOW:
            return Unknown("the load of the processors is being measured for the first time")
        total = now.total - self._base.total
        if total <= 0:
            return Unknown("the counters of the processors did not move")
        load = 100.0 * (now.busy - self._base.busy) / total
        return Ready(CpuCapacity(Percent(min(100.0, max(0.0, load)))), now.at)

    def _first(self) -> _Counters:
        try:
            return self._counters()
        except _UNREADABLE:
            return _Counters(Instant(-math.inf), 0.0, math.inf)  # so old that the next two tell the load

    def _counters(self) -> _Counters:
        at = self._clock.now()
        times = psutil.cpu_times()
        # A guest's time is part of its host's user time already.
        total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        return _Counters(at, total - times.idle - getattr(times, "iowait", 0.0), total)
