"""A whole agent on the test's own loop: real listeners, real API, real journal, in a temporary directory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from vacancy_agent.clock import SystemClock
from vacancy_agent.store.state import StateDir
from vacancy_agent.wiring.agent import Agent
from vacancy_agent.wiring.api_server import ApiServer
from vacancy_agent.wiring.contract import alone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from vacancy_agent.clock import Clock
    from vacancy_agent.store.state import Tokens
    from vacancy_agent.wiring.config import Configuration


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def manifest(target: str, **changes: Any) -> dict[str, Any]:
    """A headless host with one llamacpp upstream; `changes` go into the upstream, `spec_*` into the spec."""
    upstream = {
        "name": "up",
        "dialect": "openai",
        "target": target,
        "port": free_port(),
        "resource": "ram",
        "onOwnerReturn": "cancel",
    }
    spec = {key.removeprefix("spec_"): value for key, value in changes.items() if key.startswith("spec_")}
    upstream |= {key: value for key, value in changes.items() if not key.startswith("spec_")}
    return {
        "apiVersion": "vacancy.dev/v1alpha1",
        "kind": "LendingHost",
        "metadata": {"name": "here"},
        "spec": {
            "owner": {"presence": "headless"},
            "sampling": {"interval": "1s"},
            "resources": [{"name": "ram", "type": "memory"}],
            "access": {"apiPort": free_port()},
            "upstreams": [upstream],
        }
        | spec,
    }


@dataclass
class Lender:
    """A running agent, and how to talk to it."""

    agent: Agent
    tokens: Tokens
    http: aiohttp.ClientSession
    port: int
    api_port: int
    told: list[tuple[str, dict[str, object]]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, **kwargs: Any) -> Any:
        """A borrower's request."""
        headers = {"Authorization": f"Bearer {self.tokens.borrow}"} | kwargs.pop("headers", {})
        return self.http.request(method, self.url + path, headers=headers, **kwargs)

    def chat(self, **body: Any) -> Any:
        return self.ask("POST", "/v1/chat/completions", json={"model": "m", "messages": []} | body)

    async def api(
        self, method: str, path: str, body: object = None, *, token: str | None = None
    ) -> tuple[int, Any]:
        """A call of the API, with the admin's token (the reader's for GET /status and /metrics)."""
        reads = path in {"/status", "/metrics"}
        bearer = token if token is not None else (self.tokens.read if reads else self.tokens.admin)
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        url = f"http://127.0.0.1:{self.api_port}{path}"
        async with self.http.request(method, url, json=body, headers=headers) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if "json" in answer.content_type else text

    async def status(self) -> Any:
        return (await self.api("GET", "/status"))[1]

    async def upstream(self) -> Any:
        return (await self.status())["agent"]["upstreams"][0]

    async def until(self, wanted: Callable[[Any], object], within: float = 10.0) -> Any:
        """The upstream's status once it is as wanted."""
        async with asyncio.timeout(within):
            while not wanted(found := await self.upstream()):  # noqa: ASYNC110 - the API is asked
                await asyncio.sleep(0.02)
        return found

    def counts(self) -> dict[str, int]:
        return {o.value: n for o, n in self.agent.host.counters_of("up").outcomes.items() if n}


def configuration(folder: Path, document: dict[str, Any], tokens: Tokens) -> Configuration:
    path = folder / "host.json"
    path.write_text(json.dumps(document))
    return alone(path, tokens)


@contextlib.asynccontextmanager
async def lender(folder: Path, document: dict[str, Any], clock: Clock | None = None) -> AsyncIterator[Lender]:
    """An agent by this manifest, for the length of the block; it lends when the block begins, if it can."""
    folder.mkdir(exist_ok=True)
    state = StateDir(folder / "state")
    tokens = state.tokens()
    told: list[tuple[str, dict[str, object]]] = []
    agent = Agent(
        configuration(folder, document, tokens),
        state,
        clock or SystemClock(),
        lambda event, **facts: told.append((event, facts)),
    )
    agent.api = api = ApiServer(agent, state)
    assert not await api.follow(agent.config.access)
    spec = document["spec"]
    ready = asyncio.Event()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as http:
        running = asyncio.get_running_loop().create_task(agent.run(ready))
        try:
            await asyncio.wait(
                [running, waiting := asyncio.ensure_future(ready.wait())], return_when="FIRST_COMPLETED"
            )
            waiting.cancel()
            if running.done():
                running.result()
            yield Lender(agent, tokens, http, spec["upstreams"][0]["port"], spec["access"]["apiPort"], told)
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            await api.close()
            state.close()


pytestmark = pytest.mark.component
