"""One run of a program that may hang, flood, fork or refuse to die; it blocks, so it runs in a thread.

Invariant: `run_child` returns by its deadline plus a second, whatever the program does. Nothing in here waits
for the program's pipes to close, because a grandchild may hold them for ever, nor without a bound for the
program to die, because a process in an uninterruptible wait does not. Rejected: asyncio's own subprocesses,
whose exit waits for the pipes, and which differ between event loops.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from dataclasses import dataclass
from threading import Lock
from typing import IO, TYPE_CHECKING

from vacancy_agent.platform.process_group import SUPERVISED, has_exited, kill_group, set_nonblocking

if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import Event

    from vacancy_agent.clock import Clock
    from vacancy_agent.core.facts import Instant

_TICK = 0.02  # seconds between looks at whether the program ended
_SHORT = 0.002  # the same once it closed its output, which is how most ends begin
_DYING = 1.0  # seconds a killed program gets to be gone
_CHUNK = 65536


class ChildError(Exception):
    """The run yields nothing; the message says why."""


class ChildMissingError(ChildError):
    """The program could not be started."""


class ChildDeadlineError(ChildError):
    """It did not end in time and was killed."""


class ChildFloodError(ChildError):
    """It printed more than any sane answer and was killed."""


class ChildUnkillableError(ChildError):
    """It did not end in time, was killed, and is still there."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A program that ended by itself: `returncode` is negative for a signal."""

    returncode: int
    stdout: bytes
    stderr: bytes


class Child:
    """A program in a process group of its own, so that whatever it starts dies with it."""

    def __init__(self, argv: Sequence[str], limit: int) -> None:
        """Start it; `limit` is how many bytes of output are too many.

        Raises:
            ChildMissingError: it is not on PATH, or may not be executed.
        """
        if not SUPERVISED:
            raise ChildMissingError(f"{argv[0]} cannot be run on this platform yet")
        self._limit = limit
        self._signalling = Lock()
        self._output: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C"},
                start_new_session=True,
            )
        except OSError as error:
            raise ChildMissingError(f"{argv[0]} cannot be run: {error.strerror}") from error

    def finish(self, clock: Clock, deadline: Instant, stop: Event) -> Finished:
        """Wait for the end, then kill what is left of its group.

        Raises:
            ChildDeadlineError: `deadline` passed, or `stop` was set.
            ChildFloodError: it printed too much.
            ChildUnkillableError: it lives on after SIGKILL.
            ChildError: its output cannot be read.
        """
        try:
            with selectors.DefaultSelector() as ready:
                self._follow(ready, clock, deadline, stop)
        except OSError as error:  # no descriptor is free
            raise ChildError(f"its output cannot be read: {error.strerror or error}") from error
        finally:
            self._end()
        return Finished(
            self._process.returncode, bytes(self._output["stdout"]), bytes(self._output["stderr"])
        )

    def _follow(self, ready: selectors.BaseSelector, clock: Clock, deadline: Instant, stop: Event) -> None:
        for name, pipe in self._pipes():
            set_nonblocking(pipe.fileno())
            ready.register(pipe, selectors.EVENT_READ, name)
        while not has_exited(self._process.pid):
            if clock.now() >= deadline or stop.is_set():
                raise ChildDeadlineError("it did not answer in time")
            self._read(ready, _TICK)
        while self._read(ready, 0):
            pass

    def kill(self) -> None:
        """Kill the whole group; safe from any thread, and after the end."""
        with self._signalling:
            if self._process.returncode is None:  # not reaped, so the number is still ours
                kill_group(self._process.pid)

    def gone(self) -> bool:
        """Whether the program has ended; reaps it."""
        with self._signalling:
            return self._process.poll() is not None

    def _pipes(self) -> list[tuple[str, IO[bytes]]]:
        assert self._process.stdout is not None  # noqa: S101 - both were asked for
        assert self._process.stderr is not None  # noqa: S101 - the same
        return [("stdout", self._process.stdout), ("stderr", self._process.stderr)]

    def _read(self, ready: selectors.BaseSelector, wait: float) -> bool:
        """Take what is there; False when there was nothing."""
        if not ready.get_map():
            time.sleep(min(wait, _SHORT))
            return False
        events = ready.select(wait)
        for key, _ in events:
            chunk = os.read(key.fd, _CHUNK)
            if not chunk:
                ready.unregister(key.fileobj)
            self._output[key.data] += chunk
            if len(self._output[key.data]) > self._limit:
                raise ChildFloodError(f"it printed more than {self._limit} bytes")
        return bool(events)

    def _end(self) -> None:
        self.kill()
        for _, pipe in self._pipes():
            pipe.close()
        for _ in range(int(_DYING / _TICK)):
            if self.gone():
                return
            time.sleep(_TICK)
        raise ChildUnkillableError("it cannot be killed")
