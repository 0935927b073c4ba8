"""The API of a whole agent: readiness, the contract's status, and switches that outlive it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from standins.agents import configuration, lender, manifest
from vacancy_agent.clock import SystemClock
from vacancy_agent.core.facts import Instant, Ready
from vacancy_agent.store.state import StateDir
from vacancy_agent.wiring.agent import Agent
from vacancy_agent.wiring.api_server import ApiServer
from vacancy_api.status import AgentStatus

if TYPE_CHECKING:
    from pathlib import Path

    from standins.agents import Lender
    from standins.openai_server import OpenAiStandin

pytestmark = pytest.mark.component


async def test_the_whole_agents_status_has_the_contracts_shape(lent: Lender):
    await lent.until(lambda up: up["lendable"])
    async with asyncio.timeout(10):  # conditions follow what they rest on a moment later
        while len((status := await lent.status())["conditions"]) < 3:  # noqa: ASYNC110 - asked over a socket
            await asyncio.sleep(0.02)
    assert AgentStatus.model_validate(status["agent"]).model_dump(by_alias=True) == status["agent"]
    assert status["agent"]["configDigest"] == lent.agent.config.digest
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "ConfigApplied": "True",
        "Lendable": "True",
        "PresenceSignal": "True",
    }


async def test_it_is_ready_once_it_listens_and_everything_was_read(standin: OpenAiStandin, tmp_path: Path):
    document = manifest(standin.url)
    state = StateDir(tmp_path / "state")
    tokens = state.tokens()
    agent = Agent(configuration(tmp_path, document, tokens), state, SystemClock(), lambda *_, **__: None)
    agent.api = api = ApiServer(agent, state)
    assert await api.follow(agent.config.access) == []

    async def readiness() -> tuple[int, dict[str, Any]]:
        async with http.get("/readyz", headers={"Authorization": f"Bearer {tokens.read}"}) as answer:
            return answer.status, await answer.json()

    async with aiohttp.ClientSession(f"http://127.0.0.1:{agent.config.access.api_port}") as http:
        missing = [
            "the proxy of up does not listen",
            "presence has no fresh sample",
            "resource ram has no fresh sample",
        ]
        assert await readiness() == (503, {"ready": False, "missing": missing})
        running = asyncio.get_running_loop().create_task(agent.run())
        async with asyncio.timeout(20):
            while (found := await readiness())[0] != 200:  # noqa: ASYNC110 - asked over a socket
                await asyncio.sleep(0.02)
        assert found[1] == {"ready": True, "missing": []}
        running.cancel()
        await asyncio.wait({running})
    await api.close()
    state.close()


async def test_readings_that_grew_old_make_it_unready_and_take_their_gauges_away(lent: Lender):
    await lent.until(lambda up: up["lendable"])
    lent.agent.collectors.stop()
    board = lent.agent.host.board
    bound = board.settings.sampling.stale_after + 1
    board.presence_at = Instant(lent.agent.host.clock.now() - bound)
    ram = board.capacity["ram"]
    assert isinstance(ram, Ready)
    board.capacity["ram"] = Ready(ram.value, Instant(lent.agent.host.clock.now() - bound))
    status, detail = await lent.api("GET", "/readyz", token=lent.tokens.read)
    assert status == 503
    assert detail["missing"] == ["presence has no fresh sample", "resource ram has no fresh sample"]
    _, metrics = await lent.api("GET", "/metrics")
    assert 'vacancy_resource_enabled{resource="ram"} 1.0' in metrics
    assert "vacancy_resource_free_bytes{" not in metrics


async def test_a_borrowers_requests_are_counted_as_decisions(lent: Lender):
    await lent.until(lambda up: up["lendable"])
    async with lent.chat() as answer:
        assert answer.status == 200
    async with lent.http.get(lent.url + "/v1/models") as answer:
        assert answer.status == 401
    _, metrics = await lent.api("GET", "/metrics")
    assert 'vacancy_auth_total{outcome="allowed",scope="borrow"} 1.0' in metrics
    assert 'vacancy_auth_total{outcome="denied",scope="borrow"} 1.0' in metrics
    assert 'vacancy_requests_total{outcome="completed",upstream="up"} 1.0' in metrics


async def test_a_pause_refuses_ends_by_itself_and_says_how_long_it_lasts(lent: Lender):
    await lent.until(lambda up: up["lendable"])
    status, answer = await lent.api("POST", "/admin/pause", {"for": "1500ms"})
    assert status == 200
    assert (answer["lending"]["allowed"], answer["lending"]["by"]) == (False, "local")
    assert answer["lending"]["pausedUntil"] is not None
    assert answer["resources"] == {"ram": True}
    async with lent.chat() as reply:
        assert reply.status == 503
        assert reply.headers["X-Vacancy-Reason"] == "lending_disabled"
        assert 1 <= int(reply.headers["Retry-After"]) <= 2
    await lent.until(lambda up: up["lendable"])
    async with lent.chat() as reply:
        assert reply.status == 200
    assert (await lent.status())["agent"]["lending"] == {"allowed": True, "pausedUntil": None, "by": None}


async def test_an_open_pause_lasts_until_resumed(lent: Lender):
    status, answer = await lent.api("POST", "/admin/pause")
    assert (status, answer["lending"]) == (200, {"allowed": False, "pausedUntil": None, "by": "local"})
    async with lent.chat() as reply:
        assert reply.headers["Retry-After"] == "300"
    _, answer = await lent.api("POST", "/admin/resume")
    assert answer["lending"]["allowed"]


async def test_the_switch_for_everything_and_a_pause_are_two_things(lent: Lender):
    await lent.api("POST", "/admin/pause", {"for": "2h"})
    _, answer = await lent.api("POST", "/admin/lending", {"enabled": False})
    assert answer["lending"] == {"allowed": False, "pausedUntil": None, "by": "local"}
    _, answer = await lent.api("POST", "/admin/resume")
    assert not answer["lending"]["allowed"], "the switch is still off"
    await lent.api("POST", "/admin/pause", {"for": "2h"})
    _, answer = await lent.api("POST", "/admin/lending", {"enabled": True})
    assert answer["lending"]["pausedUntil"] is not None, "the pause is still on"
    _, answer = await lent.api("POST", "/admin/resume")
    assert answer["lending"]["allowed"]


async def test_the_machine_cannot_lift_the_clusters_pause_nor_the_cluster_the_machines(
    standin: OpenAiStandin, tmp_path: Path
):
    document = manifest(standin.url, spec_pausedUntil="2099-01-01T00:00:00Z")
    async with lender(tmp_path, document) as lent:
        cluster = {"allowed": False, "pausedUntil": "2099-01-01T00:00:00Z", "by": "cluster"}
        _, answer = await lent.api("POST", "/admin/resume")
        assert answer["lending"] == cluster
        _, answer = await lent.api("POST", "/admin/lending", {"enabled": True})
        assert answer["lending"] == cluster
        await lent.api("POST", "/admin/pause")
        del document["spec"]["pausedUntil"]
        await lent.agent.apply(configuration(tmp_path, document, lent.tokens))
        assert (await lent.status())["agent"]["lending"] == {
            "allowed": False,
            "pausedUntil": None,
            "by": "local",
        }
        _, answer = await lent.api("POST", "/admin/resume")
        assert answer["lending"]["allowed"]


async def test_switches_survive_a_restart(standin: OpenAiStandin, tmp_path: Path):
    document = manifest(standin.url, spec_resources=[{"name": n, "type": "memory"} for n in ("ram", "more")])
    async with lender(tmp_path, document) as lent:
        _, paused = await lent.api("POST", "/admin/pause", {"for": "2h"})
        status, answer = await lent.api("POST", "/admin/resources/more", {"enabled": False})
        assert (status, answer["resources"]) == (200, {"ram": True, "more": False})
    async with lender(tmp_path, document) as lent:
        status = (await lent.status())["agent"]
        assert status["lending"] == paused["lending"]
        assert {one["name"]: one["enabled"] for one in status["resources"]} == {"ram": True, "more": False}
        await lent.api("POST", "/admin/resume")
        await lent.api("POST", "/admin/resources/ram", {"enabled": False})
    async with lender(tmp_path, document) as lent:
        assert (await lent.status())["agent"]["lending"]["allowed"]
        async with lent.chat() as reply:
            assert reply.headers["X-Vacancy-Reason"] == "resource_disabled"
        await lent.api("POST", "/admin/resources/ram", {"enabled": True})
        await lent.until(lambda up: up["lendable"])


async def test_a_pause_that_expired_meanwhile_is_over_after_a_restart(standin: OpenAiStandin, tmp_path: Path):
    document = manifest(standin.url)
    async with lender(tmp_path, document) as lent:
        await lent.api("POST", "/admin/pause", {"for": "1ms"})
    async with lender(tmp_path, document) as lent:
        await lent.until(lambda up: up["lendable"])


async def test_a_pause_takes_the_stream_that_runs(lent: Lender):
    await lent.until(lambda up: up["lendable"])
    async with lent.chat(stream=True, standin={"chunks": 1000, "every_s": 0.05}) as reply:
        await reply.content.readany()
        await lent.api("POST", "/admin/pause", {"for": "1h"})
        with pytest.raises(Exception, match=r"(?i)payload|disconnect|reset"):
            await reply.read()
    assert lent.counts() == {"cancelled": 1}
