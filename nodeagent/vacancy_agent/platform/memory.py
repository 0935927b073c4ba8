"""The host's memory, cheaply enough to be read between two requests.

The sample after a job stands in the path of the next request. psutil reads every line of /proc/meminfo for
it, 41 us; the two lines that are needed cost 5 us.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable

_HEAD = 1024  # bytes; both lines are among the first three


class HostMemory(NamedTuple):
    """Bytes that programs can have without swapping, and bytes in all."""

    available: int
    total: int


class MemInfo:
    """/proc/meminfo, kept open."""

    def __init__(self, path: str | Path = "/proc/meminfo") -> None:
        self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115 - kept open for good

    if sys.platform != "win32":

        def read(self) -> HostMemory:
            """Read it now.

            Raises:
                OSError: it cannot be read.
                ValueError: a line is missing (MemAvailable: kernels before 3.14) or is no number.
            """
            text = os.pread(self._file.fileno(), _HEAD, 0)
            return HostMemory(_bytes_of(text, b"MemAvailable:"), _bytes_of(text, b"MemTotal:"))

    def __del__(self) -> None:
        self._file.close()


def memory_reader() -> Callable[[], HostMemory]:
    """How this platform's memory is read. Reading raises OSError, ValueError or RuntimeError."""
    read: Callable[[], HostMemory] = _by_psutil
    if sys.platform == "linux":
        read = MemInfo().read
    return read


def _by_psutil() -> HostMemory:
    memory = psutil.virtual_memory()
    return HostMemory(memory.available, memory.total)


def _bytes_of(text: bytes, name: bytes) -> int:
    start = text.index(name) + len(name)
    return int(text[start : text.index(b"kB", start)]) << 10
