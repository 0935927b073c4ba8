"""One process of a control plane: started, ended, killed, stopped in its tracks and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

START_DEADLINE_S = 90.0
STOP_DEADLINE_S = 20.0
LOG_TAIL_BYTES = 3000


class PartError(RuntimeError):
    """A process did not come up; the message ends with what it printed."""


class Part:
    """A process that can be restarted with the same arguments. `log` has what all its lives printed."""

    def __init__(
        self, name: str, argv: Sequence[str], log: Path, ready: Callable[[], bool], *, detached: bool = False
    ) -> None:
        self.name = name
        self.argv = list(argv)
        self.log = log
        self._ready = ready
        self._detached = detached
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    def launch(self) -> None:
        """Start the process; `wait_ready` says when it serves."""
        assert not self.running, f"{self.name} runs already"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.log.parent,
                start_new_session=self._detached,
            )

    def wait_ready(self, deadline_s: float = START_DEADLINE_S) -> None:
        """Return when it serves.

        Raises:
            PartError: It ended, or does not serve in time.
        """
        end = time.monotonic() + deadline_s
        while not self._ready():
            if not self.running:
                raise PartError(f"{self.name} ended: {self._tail()}")
            if time.monotonic() > end:
                raise PartError(f"{self.name} does not serve after {deadline_s:g} s: {self._tail()}")
            time.sleep(0.05)

    def start(self) -> None:
        """Start, and return when it serves."""
        self.launch()
        self.wait_ready()

    def stop(self) -> None:
        """End it as a service manager would; safe to call twice."""
        if self._process is None or self._process.poll() is not None:
            return
        self.thaw()
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_DEADLINE_S)
        self.kill()

    def kill(self) -> None:
        """kill -9; safe to call twice."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def restart(self) -> None:
        """Stop, and start with the same arguments."""
        self.stop()
        self.start()

    def freeze(self) -> None:
        """It keeps its connections and answers nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Undo `freeze`."""
        os.kill(self.pid, signal.SIGCONT)

    def _tail(self) -> str:
        with suppress(OSError):
            return self.log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace").strip()
        return "(no log)"
