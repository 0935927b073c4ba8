"""Peers of the same trade, where somebody installed them: they are no dependency of the project.

`VACANCY_BENCH_LITELLM` and `VACANCY_BENCH_VLLM_ROUTER` name their programs where those are not on PATH.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benches.parts import LOOPBACK, START_DEADLINE_S, PartError, free_port
from benches.wrk import Target, request_body

if TYPE_CHECKING:
    from collections.abc import Callable

    from benches.parts import Lab, Part


@dataclass(frozen=True, slots=True)
class Peer:
    """How to find one, and its command line for a port and an upstream."""

    name: str
    program: str
    arguments: Callable[[Lab, int, int], list[str]]

    @property
    def variable(self) -> str:
        """The environment variable that names the program."""
        return f"VACANCY_BENCH_{self.name.upper()}"

    def find(self) -> str | None:
        """The program, if it is there."""
        return shutil.which(os.environ.get(self.variable, self.program))

    def how_to_get(self) -> str:
        """What a report says where it is missing."""
        return f"{self.program} is not installed (on PATH, or named by {self.variable})"

    def start(self, lab: Lab, upstream: int) -> Target:
        """Start it in front of the upstream, on the core of the proxy under test."""
        binary = self.find()
        assert binary is not None
        port = free_port()
        part = lab.start(
            self.name, [binary, *self.arguments(lab, port, upstream)], port=port, core=lab.proxy_core
        )
        _wait_until_it_forwards(part, port)
        return Target(self.name, port, connections=(32,))


def _wait_until_it_forwards(part: Part, port: int) -> None:
    """These listen before they have looked at their upstream."""
    deadline = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
        with suppress(OSError, http.client.HTTPException), closing(connection):
            connection.request(
                "POST", "/v1/chat/completions", request_body(), {"Content-Type": "application/json"}
            )
            if connection.getresponse().status == http.HTTPStatus.OK:
                return
        time.sleep(0.2)
    raise PartError(f"{part.name} does not forward:\n{part.last_words()}")


def _litellm(lab: Lab, port: int, upstream: int) -> list[str]:
    model = {
        "model_name": "bench",
        "litellm_params": {
            "model": "openai/bench",
            "api_base": f"http://{LOOPBACK}:{upstream}/v1",
            "api_key": "none",
        },
    }
    config = lab.directory / "litellm.yaml"
    config.write_text(json.dumps({"model_list": [model]}))
    return ["--config", str(config), "--host", LOOPBACK, "--port", str(port)]


def _vllm_router(lab: Lab, port: int, upstream: int) -> list[str]:
    del lab
    where = ["--worker-urls", f"http://{LOOPBACK}:{upstream}", "--host", LOOPBACK, "--port", str(port)]
    return [*where, "--policy", "round_robin", "--log-level", "error", "--prometheus-port", str(free_port())]


PEERS = (Peer("litellm", "litellm", _litellm), Peer("vllm_router", "vllm-router", _vllm_router))
