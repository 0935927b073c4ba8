"""The ComfyUI stand-in as a test starts it: `with ComfyStandin("0.28.1") as server:`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

from standins.comfyui_recorded import NEW

PROGRAM = Path(__file__).with_name("comfyui_server.py")


def graph(seconds: float = 0.0, **inputs: Any) -> dict[str, Any]:
    """A graph that runs that long."""
    return {"1": {"class_type": "EmptyImage", "inputs": {"seconds": seconds, **inputs}}}


class ComfyStandin:
    def __init__(self, release: str = NEW, port: int = 0) -> None:
        command = [sys.executable, str(PROGRAM), "--port", str(port), "--release", release]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().split()[-1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.pid = self._process.pid
        self.release = release

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()

    def behave(self, **behaviour: Any) -> None:
        self.ask("PUT", "/_standin/behaviour", behaviour)

    def submit(self, seconds: float = 0.0, **more: Any) -> str:
        """Submit a prompt as the owner does, past the agent; its id."""
        prompt_id: str = self.ask("POST", "/prompt", {"prompt": graph(seconds)} | more)["prompt_id"]
        return prompt_id

    def seen(self, *paths: str) -> list[dict[str, Any]]:
        """The requests to these paths so far (to all, when none is named)."""
        seen = [entry for entry in self.ask("GET", "/_standin/seen")["seen"] if "target" in entry]
        return [entry for entry in seen if not paths or entry["target"].partition("?")[0] in paths]

    def ended(self, prompt_id: str) -> str | None:
        """How a prompt ended."""
        events = {entry["prompt_id"]: entry["event"] for entry in self._seen_all() if "event" in entry}
        return events.get(prompt_id)

    def ids(self) -> tuple[list[str], list[str]]:
        """What runs, and what waits."""
        queue = self.ask("GET", "/queue")
        return [one[1] for one in queue["queue_running"]], [one[1] for one in queue["queue_pending"]]

    def until(self, holds: Any, within: float = 10.0) -> Any:
        deadline = time.monotonic() + within
        while not (found := holds()):
            assert time.monotonic() < deadline, "it did not come"
            time.sleep(0.02)
        return found

    def _seen_all(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("GET", "/_standin/seen")["seen"]
        return found

    def ask(self, method: str, path: str, document: object = None, **headers: str) -> Any:
        """A request past the agent; the decoded answer, None for an empty one."""
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            text = answer.read()
        return json.loads(text) if text else None
