"""`vacancy agent` as a process of its own, as a person starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from signal import SIGTERM, Signals
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

START_S = 30.0
DEV = ("-X", "dev", "-W", "error")
"""Every warning is an error, and what was not closed is told."""


class AgentProcess:
    """Started when made; `with` ends it. Its log goes to a file, which can be read at any time."""

    def __init__(
        self,
        folder: Path,
        document: dict[str, Any],
        *options: str,
        python: tuple[str, ...] = (),
        program: tuple[str, ...] = ("-m", "vacancy_agent.cli"),
        env: dict[str, str] | None = None,
        state: Path | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.manifest = folder / "host.json"
        self.state = state or folder / "state"
        self.log = folder / "agent.log"
        self.document = document
        self.write(document)
        self.api_url = f"http://127.0.0.1:{document['spec']['access']['apiPort']}"
        command = [sys.executable, *python, *program, "agent", "--manifest", str(self.manifest)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--state-dir", str(self.state), *options],
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def write(self, document: dict[str, Any]) -> None:
        """Put this manifest in the place of the one that is there, in one step."""
        beside = self.manifest.with_suffix(".new")
        beside.write_text(json.dumps(document))
        beside.replace(self.manifest)

    @property
    def text(self) -> str:
        return self.log.read_text()

    @property
    def tokens(self) -> dict[str, str]:
        tokens: dict[str, str] = json.loads((self.state / "tokens.json").read_text())
        return tokens

    def ask(self, method: str, path: str, body: object = None, scope: str = "read") -> tuple[int, Any]:
        """A call of the API."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.api_url + path, data=data, method=method)  # noqa: S310 - our own address
        request.add_header("Authorization", f"Bearer {self.tokens[scope]}")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def status(self) -> Any:
        return self.ask("GET", "/status")[1]

    def until(self, holds: Callable[[], object], within: float = START_S) -> Any:
        """Wait until `holds()`; what it returned. An agent that does not answer yet is asked again."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.text
            try:
                if found := holds():
                    return found
            except OSError:
                pass
            time.sleep(0.03)
        raise AssertionError(f"it did not come:\n{self.text}")

    def ready(self) -> Self:
        """Wait until it is ready."""
        self.until(lambda: self.ask("GET", "/readyz")[0] == 200)
        return self

    def lends(self) -> Self:
        """Wait until its first upstream is lendable."""
        self.until(lambda: self.status()["agent"]["upstreams"][0]["lendable"])
        return self

    def signal(self, number: Signals) -> None:
        self.process.send_signal(number)

    def end(self, number: Signals = SIGTERM, within: float = 30.0) -> int:
        """Signal it and wait; its exit code."""
        self.signal(number)
        return self.process.wait(within)
