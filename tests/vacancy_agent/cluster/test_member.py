"""The parts together, without an agent: what a steady minute costs the API server."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

import pytest

from standins.kube_api import KubeApi
from standins.membership import HOSTS, LEASES, NAME, host, identity
from standins.until import until
from vacancy_agent.clock import SystemClock
from vacancy_agent.cluster.member import Member
from vacancy_agent.core.conditions import Condition, Status
from vacancy_agent.core.facts import WallTime
from vacancy_api.reasons import ConditionType

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.component

LENDABLE = Condition(ConditionType.LENDABLE, Status.TRUE, "WouldAdmit", "yes", WallTime(0.0))


class Agent:
    """Idle, and says what it is told to say."""

    document = None
    free = 8000
    member: Member

    async def run_by(self, document: Any, text: str) -> list[str]:
        raise AssertionError(text)

    async def idle(self, why: str) -> None: ...

    def refuse(self, errors: list[str]) -> None: ...

    def unreadable(self, why: str) -> None: ...

    def status(self) -> dict[str, Any]:
        memory = {"name": "ram", "type": "memory", "state": "ready", "reason": None, "pressure": None}
        figures = {"freeMiB": self.free, "totalMiB": 16_000, "utilizationPercent": None, "enabled": True}
        return {
            "version": "0",
            "summary": {"freeVRAM": None, "models": [], "active": 0},
            "lending": {"allowed": True, "pausedUntil": None, "by": None},
            "resources": [memory | figures],
            "upstreams": [],
        }

    def conditions(self) -> list[Condition]:
        return [LENDABLE]


@pytest.fixture
async def server() -> AsyncIterator[KubeApi]:
    async with KubeApi() as running:
        yield running


@pytest.fixture
async def agent(server: KubeApi, tmp_path: Path) -> AsyncIterator[Agent]:
    host(server, {})
    agent = Agent()
    who = identity(tmp_path / "join", server.url)
    member = Member(agent, who, tmp_path / "secrets", SystemClock(), lambda *_, **__: None)
    running = asyncio.get_running_loop().create_task(member.run())
    agent.member = member
    yield agent
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_a_steady_state_has_no_write_but_the_lease(server: KubeApi, agent: Agent):
    await until(lambda: server.of("PATCH", "/status"))
    for index in range(120):
        agent.free = 8000 + (700 if index % 2 else -700)
        await asyncio.sleep(0.1)
    writes = [one.path for one in server.asked if one.method != "GET"]
    assert writes.count(f"{HOSTS}/{NAME}/status") == 1
    assert writes.count(f"{LEASES}/lh-{NAME}") == len(writes) - 1 <= 3


async def test_the_clocks_difference_is_reported(server: KubeApi, agent: Agent):
    await until(lambda: server.of("PATCH", "/status"))
    body = server.of("PATCH", "/status")[0].body
    assert body is not None
    assert body["status"]["agent"]["clockSkewSeconds"] == 0.0


async def test_after_a_sleep_everything_is_connected_anew_at_once(server: KubeApi, agent: Agent):
    """Half-open connections: without a word from us they would be waited for, one after the other."""
    await until(lambda: server.of("PATCH", "/status") and len(server.of("GET", "/lendinghosts")) > 1)
    server.half_open()
    before = len(server.asked)
    began = time.monotonic()
    agent.member.woke()
    await until(lambda: any(one.method == "PATCH" and LEASES in one.path for one in server.asked[before:]))
    host(server, {"lending": False}, generation=2)
    await until(lambda: [one for one in server.asked[before:] if "watch" in one.query], within=30)
    assert time.monotonic() - began < 15, "30 s are allowed; a call on a dead connection takes 8"
