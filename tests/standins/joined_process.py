"""`vacancy agent --join DIR` as a process of its own, from the join Secret that the operator made."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from signal import SIGCONT, SIGSTOP
from typing import TYPE_CHECKING, Any, Self

import psutil

if TYPE_CHECKING:
    from pathlib import Path

    from standins.operator_process import Hosts


class JoinedProcess:
    """Started when made; `with` ends it. Its log goes to a file, which can be read at any time."""

    def __init__(self, hosts: Hosts, name: str, folder: Path, *options: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.join, self.state, self.log = folder / "join", folder / "state", folder / "agent.log"
        self._options = options
        write_join(hosts, name, self.join)
        self.start()

    def start(self) -> None:
        """Start it (again)."""
        command = [sys.executable, "-m", "vacancy_agent.cli", "agent", "--join", str(self.join)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--state-dir", str(self.state), *self._options],
                env=dict(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """As the kernel does it: no goodbye."""
        self.process.kill()
        self.process.wait()

    def stopped(self) -> None:
        """It does nothing at all from now on, and is not told what happens."""
        self.process.send_signal(SIGSTOP)

    def resumed(self) -> None:
        self.process.send_signal(SIGCONT)

    def end(self, within: float = 30.0) -> int:
        """As a service manager does it; the exit code."""
        self.process.terminate()
        return self.process.wait(within)

    @property
    def text(self) -> str:
        return self.log.read_text()

    @property
    def rss(self) -> int:
        """Resident memory, bytes."""
        resident: int = psutil.Process(self.process.pid).memory_info().rss
        return resident

    @property
    def cpu_seconds(self) -> float:
        used = psutil.Process(self.process.pid).cpu_times()
        return float(used.user + used.system)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()


def write_join(hosts: Hosts, name: str, folder: Path) -> None:
    """The files that `vacancy join` unpacks."""
    secret: dict[str, Any] | None = hosts.get("secrets", f"lh-{name}-join")
    assert secret is not None
    folder.mkdir(parents=True, exist_ok=True)
    for key, value in secret["data"].items():
        path = folder / key
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(value))
