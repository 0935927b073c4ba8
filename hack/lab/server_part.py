"""A real server for tests, as a process of its own on a port of this machine, with its log in a file."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

START_DEADLINE_S = 60.0
STOP_DEADLINE_S = 10.0


class ServerPart:
    """One server that can be started, killed and started again at the same address.

    `url` has no trailing slash; `log` is the path of what the server printed.
    """

    title: str
    health: str
    """A path that it answers as soon as it can do its work."""

    def __init__(self, port: int) -> None:
        """Port 0: a free one."""
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = tempfile.TemporaryDirectory(prefix=f"{self.title}-lab-")
        self.log = Path(self._folder.name) / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str] | None:
        """None: that of this process."""
        return None

    def headers(self) -> dict[str, str]:
        """Headers of every request that is asked past the agent."""
        return {}

    def start(self) -> None:
        """Start the server and wait until it answers. Its input is a pipe that ends with this process.

        Raises:
            RuntimeError: it ended or did not answer in time; the message holds its log's end.
        """
        command, environment = self.command(), self.environment()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=environment,
            )
        deadline = time.monotonic() + START_DEADLINE_S
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                urllib.request.urlopen(self.url + self.health, timeout=2).close()
                return
            time.sleep(0.02)
        tail = self.log.read_text(errors="replace")[-2000:]
        self.kill()
        raise RuntimeError(f"{self.title} did not answer at {self.url}:\n{tail}")

    def stop(self) -> None:
        """End the server with what it started; its log goes too."""
        self.kill(signal.SIGTERM)
        self._folder.cleanup()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End the server by that signal, and what it started with it; the address can be served again."""
        process, self._process = self._process, None
        if process is None:
            return
        with process:
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_DEADLINE_S)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def restart(self) -> None:
        """Replace the process by a new one at the same address."""
        self.kill()
        self.start()

    def ask(self, method: str, path: str, document: object = None, within: float = 60.0) -> Any:
        """One request, past the agent; the decoded answer."""
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=self.headers())
        with urllib.request.urlopen(request, timeout=within) as answer:
            return json.load(answer)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
