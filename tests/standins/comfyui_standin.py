"""The ComfyUI stand-in as a test starts it: `with ComfyStandin("0.28.1") as server:`."""

from __future__ import annotations

import time
from typing import Any

from standins.comfyui_recorded import NEW
from standins.program import StandinProgram


def graph(seconds: float = 0.0, **inputs: Any) -> dict[str, Any]:
    """A graph that runs that long."""
    return {"1": {"class_type": "EmptyImage", "inputs": {"seconds": seconds, **inputs}}}


class ComfyStandin(StandinProgram):
    def __init__(self, release: str = NEW, port: int = 0) -> None:
        super().__init__("standins.comfyui_server", "--port", str(port), "--release", release)
        self.release = release

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
