"""One agent whole: how configurations reach it, what outlives them, and how it ends."""

from __future__ import annotations

import asyncio
import copy
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from standins.agents import configuration, free_port, lender, manifest
from standins.until import until
from vacancy_agent.clock import SystemClock
from vacancy_agent.core.facts import Unknown
from vacancy_agent.store.errors import StoreError
from vacancy_agent.store.journal_format import read_header
from vacancy_agent.store.state import StateDir
from vacancy_agent.wiring import agent as module
from vacancy_agent.wiring.agent import Agent
from vacancy_agent.wiring.supervise import PartEndedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from standins.agents import Lender
    from standins.openai_server import OpenAiStandin

pytestmark = pytest.mark.component

SLOW = {"chunks": 10_000, "every_s": 0.02}


@asynccontextmanager
async def an_agent(folder: Path, document: dict[str, Any]) -> AsyncIterator[Agent]:
    """One that does not run yet, and whose state directory is given back."""
    state = StateDir(folder / "state")
    config = configuration(folder, document, state.tokens())
    agent = Agent(config, state, SystemClock(), lambda *_, **__: None)
    try:
        yield agent
    finally:
        await agent.close()
        state.close()


async def condition(lent: Lender, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(c for c in (await lent.status())["conditions"] if c["type"] == name)
    return found


async def apply(lent: Lender, folder: Path, document: dict[str, Any]) -> None:
    await lent.agent.apply(configuration(folder, document, lent.tokens))


def told(lent: Lender, event: str) -> list[dict[str, object]]:
    return [facts for name, facts in lent.told if name == event]


@asynccontextmanager
async def held(lent: Lender) -> AsyncIterator[str]:
    """A job whose borrower left and whose server goes on for a while."""
    await lent.until(lambda up: up["lendable"])
    async with lent.chat(stream=True, standin=SLOW | {"lingers_s": 3600}) as reply:
        await reply.content.readany()
    await lent.until(lambda up: up["held"] == 1)
    _, answer = await lent.api("GET", "/admin/holds")
    yield answer["holds"][0]["id"]


# Configurations


async def test_a_new_configuration_is_told_and_shown(lent: Lender, tmp_path: Path, standin: OpenAiStandin):
    document = manifest(standin.url, slots=3, spec_access={"apiPort": lent.api_port})
    before = (await lent.status())["agent"]["configDigest"]
    await apply(lent, tmp_path, document)
    status = await lent.status()
    assert status["agent"]["configDigest"] not in {before, None}
    assert status["agent"]["upstreams"][0]["port"] == document["spec"]["upstreams"][0]["port"]
    assert told(lent, "configuration applied") == [
        {"digest": status["agent"]["configDigest"][:12], "was": before[:12]}
    ]


async def test_the_api_moves_with_the_configuration(standin: OpenAiStandin, tmp_path: Path):
    document = manifest(standin.url)
    async with lender(tmp_path, document) as lent:
        document["spec"]["access"]["apiPort"] = free_port()
        await apply(lent, tmp_path, document)
        with pytest.raises(aiohttp.ClientError):
            await lent.status()
        lent.api_port = document["spec"]["access"]["apiPort"]
        assert (await condition(lent, "ConfigApplied"))["status"] == "True"


async def test_a_refused_configuration_changes_nothing_and_names_every_error(lent: Lender):
    await lent.until(lambda up: up["lendable"])
    digest = (await lent.status())["agent"]["configDigest"]
    async with lent.chat(stream=True, standin=SLOW) as reply:
        errors = ["spec.a: is wrong", "spec.b[0].c: is wrong too"]
        lent.agent.refuse_config(errors)
        lent.agent.refuse_config(errors)
        found = await condition(lent, "ConfigApplied")
        assert (found["status"], found["reason"]) == ("False", "Invalid")
        assert found["message"] == "spec.a: is wrong; spec.b[0].c: is wrong too"
        assert told(lent, "configuration refused") == [
            {"errors": "spec.a: is wrong | spec.b[0].c: is wrong too"}
        ]
        assert await reply.content.readany()
    assert (await lent.status())["agent"]["configDigest"] == digest
    await lent.agent.apply(lent.agent.config)
    assert (await condition(lent, "ConfigApplied"))["status"] == "True"


async def test_a_store_that_fails_refuses_a_configuration_whole(
    lent: Lender, tmp_path: Path, standin: OpenAiStandin, monkeypatch: pytest.MonkeyPatch
):
    def full(_specs: object) -> None:
        raise StoreError("cannot make the hold journal: disk full")

    before = (await lent.status())["agent"]
    monkeypatch.setattr(lent.agent._journal, "configure", full)
    document = manifest(standin.url, slots=7, name="other", spec_access={"apiPort": lent.api_port})
    with pytest.raises(StoreError):
        await apply(lent, tmp_path, document)
    after = (await lent.status())["agent"]
    assert (after["configDigest"], after["upstreams"][0]["name"]) == (before["configDigest"], "up")
    assert lent.agent.host.board.settings.upstreams.keys() == {"up"}


async def test_a_port_that_was_taken_is_bound_once_it_is_free(
    standin: OpenAiStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "TICK_S", 0.02)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        document = manifest(standin.url, port=taken.getsockname()[1])
        async with lender(tmp_path, document) as lent:
            up = await lent.upstream()
            assert (up["bound"], up["lendable"], up["reason"]) == (False, False, "upstream_unavailable")
            found = await condition(lent, "ConfigApplied")
            assert found["status"] == "False"
            assert found["message"].startswith("spec.upstreams[0].port: up cannot listen on")
            await until(
                lambda: any(one.reason == "UpstreamUnavailable" for one in lent.agent.conditions.all())
            )
            lent.agent.refuse_config(["spec.x: is wrong"])
            both = (await condition(lent, "ConfigApplied"))["message"]
            assert both == "spec.x: is wrong; " + found["message"]
            await asyncio.sleep(0.5)
            assert len(told(lent, "cannot listen")) == 1, "the log says it once"
            taken.close()
            await lent.until(lambda up: up["bound"] and up["lendable"])
            await until(lambda: any(one.reason == "WouldAdmit" for one in lent.agent.conditions.all()))
            assert (await condition(lent, "ConfigApplied"))["message"] == "spec.x: is wrong"
            async with lent.chat() as reply:
                assert reply.status == 200


async def test_a_hold_outlives_its_upstream_and_comes_back_with_it(standin: OpenAiStandin, tmp_path: Path):
    whole = manifest(standin.url)
    spare = {**whole["spec"]["upstreams"][0], "name": "spare", "port": free_port()}
    without = copy.deepcopy(whole)
    without["spec"]["upstreams"] = [spare]
    async with lender(tmp_path, whole) as lent, held(lent) as hold:
        await apply(lent, tmp_path, without)
        _, answer = await lent.api("GET", "/admin/holds")
        assert [one["id"] for one in answer["holds"]] == [hold]
        url = f"http://127.0.0.1:{spare['port']}/v1/chat/completions"
        headers = {"Authorization": f"Bearer {lent.tokens.borrow}"}
        async with lent.http.post(url, json={"model": "m", "messages": []}, headers=headers) as reply:
            assert reply.headers["X-Vacancy-Reason"] == "resource_busy", "what it may compute is still there"
        await apply(lent, tmp_path, whole)
        _, answer = await lent.api("GET", "/admin/holds")
        assert [one["id"] for one in answer["holds"]] == [hold]
        assert await lent.api("DELETE", f"/admin/holds/{hold}") == (200, {"released": hold})
        async with lent.chat() as reply:
            assert reply.status == 200


# Switches


async def test_a_switch_that_could_not_be_saved_stays_in_force_over_a_reload(
    lent: Lender, monkeypatch: pytest.MonkeyPatch
):
    async def full(*_: object) -> None:
        raise StoreError("cannot write it: disk full")

    await lent.until(lambda up: up["lendable"])
    for name in ("set_pause", "set_lending", "set_resource"):
        monkeypatch.setattr(lent.agent.store, name, full)
    status, answer = await lent.api("POST", "/admin/pause", {"for": "2h"})
    assert (status, answer["error"]["code"]) == (500, "not_saved")
    assert (await lent.api("POST", "/admin/resources/ram", {"enabled": False}))[0] == 500
    await lent.agent.apply(lent.agent.config)
    found = (await lent.status())["agent"]
    assert found["lending"]["by"] == "local"
    assert not found["resources"][0]["enabled"]


async def test_two_switches_at_once_both_count(lent: Lender):
    await asyncio.gather(
        lent.agent.set_lending(False),
        lent.agent.pause(lent.agent.host.clock.wall() + 3600),  # type: ignore[arg-type]
    )
    found = (await lent.status())["agent"]["lending"]
    assert found == {"allowed": False, "pausedUntil": None, "by": "local"}, "the switch has no end"


async def test_a_resource_that_comes_later_is_as_it_was_switched(standin: OpenAiStandin, tmp_path: Path):
    with_more = manifest(standin.url, spec_resources=[{"name": n, "type": "memory"} for n in ("ram", "more")])
    without = copy.deepcopy(with_more)
    without["spec"]["resources"].pop()
    async with lender(tmp_path, with_more) as lent:
        await lent.api("POST", "/admin/resources/more", {"enabled": False})
    async with lender(tmp_path, without) as lent:
        await apply(lent, tmp_path, with_more)
        resources = (await lent.status())["agent"]["resources"]
        assert {one["name"]: one["enabled"] for one in resources} == {"ram": True, "more": False}


async def test_switches_are_told_with_their_end(lent: Lender):
    await lent.api("POST", "/admin/pause", {"for": "1h"})
    await lent.api("POST", "/admin/pause")
    await lent.api("POST", "/admin/resume")
    first, second = told(lent, "paused here")
    assert str(first["until"]).endswith("Z")
    assert second == {"until": "resumed"}
    assert told(lent, "resumed here") == [{}]


# Its state


async def test_usage_is_counted_by_borrower_and_outlives_the_agent(standin: OpenAiStandin, tmp_path: Path):
    document = manifest(standin.url)
    async with lender(tmp_path, document) as lent:
        await lent.until(lambda up: up["lendable"])
        for _ in range(2):
            async with lent.chat(standin={"head_delay_s": 0.05}) as reply:
                await reply.read()
        (used,) = (await lent.status())["owner"]["usageToday"]
        assert (used["borrower"], used["requests"]) == ("borrow", 2)
        assert used["seconds"] >= 0.1
    async with lender(tmp_path, document) as lent:
        assert (await lent.status())["owner"]["usageToday"] == [used]


async def test_what_is_not_ready_is_named_a_line_each(lent: Lender):
    await lent.until(lambda up: up["lendable"])
    assert lent.agent.ready() == []
    lent.agent.collectors.stop()
    lent.agent.host.board.set_capacity("ram", Unknown("it fell off the bus"))
    assert lent.agent.ready() == ["resource ram has no fresh sample"]
    lent.agent.host.board.set_resource_enabled("ram", False)
    assert lent.agent.ready() == [], "what is switched off need not be measured"
    lent.agent.host.board.presence_at = None
    await lent.agent.listeners.close()
    assert lent.agent.ready() == ["the proxy of up does not listen", "presence has no fresh sample"]


async def test_a_hold_is_released_by_whoever_knows_better_and_only_once(lent: Lender):
    async with held(lent) as hold:
        assert await lent.api("DELETE", f"/admin/holds/{hold}") == (200, {"released": hold})
        assert (await lent.api("DELETE", f"/admin/holds/{hold}"))[0] == 404
        assert told(lent, "freed")[0]["by"] == "administrator"


# Its end


async def test_the_journal_is_marked_clean_at_the_end_and_not_before(standin: OpenAiStandin, tmp_path: Path):
    file = tmp_path / "state" / "holds" / "up.holds"
    async with lender(tmp_path, manifest(standin.url)) as lent:
        await lent.until(lambda up: up["lendable"])
        header = read_header(file.read_bytes())
        assert header is not None
        assert not header.clean
    header = read_header(file.read_bytes())
    assert header is not None
    assert header.clean


async def test_a_part_that_fails_ends_the_agent_and_still_closes_everything(
    standin: OpenAiStandin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with an_agent(tmp_path, manifest(standin.url)) as agent:
        ready = asyncio.Event()
        running = asyncio.get_running_loop().create_task(agent.run(ready))
        await ready.wait()

        def fail() -> None:
            raise LookupError("a bug in a collector")

        monkeypatch.setattr(agent.readings, "tick", fail)
        with pytest.raises(ExceptionGroup) as failed:
            await running
        assert failed.group_contains(PartEndedError, match="the clock failed: LookupError: a bug")
        assert not agent.listeners.bound("up")
    header = read_header((tmp_path / "state" / "holds" / "up.holds").read_bytes())
    assert header is not None
    assert header.clean


async def test_an_agent_that_never_ran_can_be_closed(standin: OpenAiStandin, tmp_path: Path):
    async with an_agent(tmp_path, manifest(standin.url)) as agent:
        await agent.close()
        await agent.close()


async def test_a_reply_that_ends_in_the_grace_is_complete_and_no_hold(standin: OpenAiStandin, tmp_path: Path):
    """The end waits for what is nearly done: it is proved, sampled and counted as ever."""
    document = manifest(standin.url)
    async with lender(tmp_path, document) as lent:
        await lent.until(lambda up: up["lendable"])
        asking = asyncio.get_running_loop().create_task(_whole(lent, {"head_delay_s": 0.4}))
        await until(lambda: any(one["how"] == "running" for one in standin.seen()))
    assert await asking == 200
    async with lender(tmp_path, document) as lent:
        assert (await lent.upstream())["held"] == 0
        (used,) = (await lent.status())["owner"]["usageToday"]
        assert used["requests"] == 1


async def _whole(lent: Lender, behaviour: dict[str, Any]) -> int:
    async with aiohttp.ClientSession() as http:
        headers = {"Authorization": f"Bearer {lent.tokens.borrow}"}
        body = {"model": "m", "messages": [], "standin": behaviour}
        async with http.post(f"{lent.url}/v1/chat/completions", json=body, headers=headers) as reply:
            await reply.read()
            return reply.status
