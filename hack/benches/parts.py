"""Processes that a benchmark starts: each pinned to a core, each gone at the end, whatever happened.

One core belongs to the proxy under test, the other to the load generator and the upstream. Without that, the
scheduler decides from run to run who shares a core with whom, and a ratio tells of it more than of the proxy.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType
    from typing import Self

LOOPBACK = "127.0.0.1"
START_DEADLINE_S = 30.0
STOP_DEADLINE_S = 10.0
ROOT = Path(__file__).resolve().parents[2]


class PartError(Exception):
    """A part did not do its work: did not start, died, refused; the message says what was heard of it."""


def cores() -> tuple[int, int]:
    """The core of the proxy under test, and the core of everything else."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[1 % len(usable)]


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


class Lab:
    """A scratch directory and the processes that live as long as it."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._usable = os.sched_getaffinity(0)
        self.proxy_core, self.load_core = cores()
        self.directory = Path()

    def __enter__(self) -> Self:
        self.directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="vacancy-bench-")))
        self.directory.chmod(0o755)
        os.sched_setaffinity(0, {self.load_core})
        self._stack.callback(os.sched_setaffinity, 0, self._usable)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def start(
        self,
        name: str,
        argv: Sequence[str],
        *,
        port: int,
        core: int | tuple[int, ...],
        env: dict[str, str] | None = None,
    ) -> Part:
        """Start a program, wait until it listens on `port`.

        Raises:
            PartError: it ended or did not listen in time.
        """
        log = self.directory / f"{name}-{port}.log"
        part = self._stack.enter_context(_running(name, argv, log=log, core=core, env=env or {}))
        part.wait_for_port(port)
        return part


class Part:
    """One running program."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.process = process
        self.log = log

    @property
    def pid(self) -> int:
        """Of the program itself: the pinning command has replaced itself by it."""
        return self.process.pid

    def last_words(self) -> str:
        """The end of what it wrote."""
        return self.log.read_text(errors="replace")[-2000:]

    def wait_for_port(self, port: int) -> None:
        """Wait until somebody accepts connections there."""
        deadline = time.monotonic() + START_DEADLINE_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise PartError(
                    f"{self.name} ended with code {self.process.returncode}:\n{self.last_words()}"
                )
            with suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=0.5):
                return
            time.sleep(0.02)
        raise PartError(f"{self.name} did not listen on port {port}:\n{self.last_words()}")

    def stop(self) -> None:
        """Ask, then insist; take its whole process group along."""
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=STOP_DEADLINE_S)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def _running(
    name: str, argv: Sequence[str], *, log: Path, core: int | tuple[int, ...], env: dict[str, str]
) -> Iterator[Part]:
    cpus = ",".join(map(str, core if isinstance(core, tuple) else (core,)))
    program = ["taskset", "-c", cpus, *argv]
    with log.open("wb") as sink:
        process = subprocess.Popen(
            program,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env={**os.environ, **env},
            process_group=0,
        )
    part = Part(name, process, log)
    try:
        yield part
    finally:
        part.stop()


def python_module(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module with this interpreter."""
    return [sys.executable, "-m", module, *arguments]
