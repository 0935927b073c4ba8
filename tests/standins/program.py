"""A server to stand in for another is a program of its own on a real socket: both its sides.

It prints `listening on PORT` and ends with its input, so also when whoever started it was killed. By hand:

    PYTHONPATH=tests:hack python -m standins.openai_server --port 0
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from aiohttp import web

TESTS = Path(__file__).resolve().parents[1]
PLACES = (TESTS, TESTS.parent / "hack")


class StandinProgram:
    """The program as a test starts it; within `with`, or until `stop`."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, PLACES))},
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().split()[-1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it at once."""
        with self._process:
            self._process.kill()

    def ask(self, method: str, path: str, document: object = None, **headers: str) -> Any:
        """One request, past the agent; the decoded answer, None for an empty one."""
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)  # noqa: S310 - our own address
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - as above
            text = answer.read()
        return json.loads(text) if text else None


async def listening_on(port: int) -> None:
    """Tell whoever started this program, and wait until it wants no more."""
    print(f"listening on {port}", flush=True)  # noqa: T201 - the parent reads it
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def serve_app(app: web.Application, port: int, *, cancels: bool = False) -> None:
    """The program of an application. `cancels`: a handler whose client has left is cancelled."""
    from aiohttp import web

    runner = web.AppRunner(app, handler_cancellation=cancels, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await listening_on(runner.addresses[0][1])
