"""Steady state, edits and outages, against a real API server and operator."""

from __future__ import annotations

import asyncio
import contextlib
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from standins.agents import free_port
from standins.openai_server import OpenAiStandin
from standins.whole_path import NAME, WholePath, lending, note, seconds_until, whole_path

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from lab.kube_lab import KubeLab
    from standins.joined_process import JoinedProcess

pytestmark = pytest.mark.kube

MINUTE_S = 60.0


@pytest.fixture
def path(own_kube: KubeLab, tmp_path: Path) -> Iterator[WholePath]:
    with whole_path(own_kube, tmp_path) as made:
        yield made


@pytest.fixture
def standin() -> Iterator[OpenAiStandin]:
    with OpenAiStandin() as server:
        yield server


def spec_of(standin: OpenAiStandin) -> dict[str, Any]:
    spec = lending(standin.url)
    spec["upstreams"][0]["dialect"] = "openai"
    return spec


@contextlib.asynccontextmanager
async def lent(path: WholePath, spec: dict[str, Any]) -> AsyncIterator[JoinedProcess]:
    """An agent that is Ready and Lendable by this spec."""
    await asyncio.to_thread(path.apply, spec)
    with await asyncio.to_thread(path.joined) as agent:
        await seconds_until(
            lambda: path.is_now("Ready", "True") and path.is_now("Lendable", "True"), 30.0, lambda: agent.text
        )
        yield agent


async def asks(path: WholePath, spec: dict[str, Any], token: str) -> int:
    """What a borrower gets: the status, 0 for nobody there."""
    url = f"http://127.0.0.1:{spec['upstreams'][0]['port']}/v1/chat/completions"
    headers = {"Authorization": f"Bearer {token}"}
    body = {"model": "m", "messages": []}
    try:
        async with aiohttp.ClientSession() as http, http.post(url, json=body, headers=headers) as answer:
            return answer.status
    except aiohttp.ClientConnectorError:
        return 0


async def test_a_steady_minute_has_no_write_but_lease_renewals(path: WholePath, standin: OpenAiStandin):
    async with lent(path, spec_of(standin)) as agent:
        await asyncio.sleep(15.0)  # whatever start and readiness have still to say
        since, used = path.cluster.audit.here(), agent.cpu_seconds
        for index in range(int(MINUTE_S / 2)):
            ballast = b"x" * (150 << 20) if index % 2 else b""  # memory that comes and goes
            await asyncio.sleep(2.0)
            del ballast
        counts = path.cluster.audit.counts(since, writes_only=True)
        ours = {count: number for count, number in counts.items() if count.user == path.agent_user()}
        note("rss_joined_mib", agent.rss / 2**20)
        note("cpu_idle_percent", (agent.cpu_seconds - used) / MINUTE_S * 100)
        assert {(count.verb, count.resource) for count in ours} == {("patch", "leases")}
        assert 5 <= sum(ours.values()) <= 7
        others = {count for count in counts if count.resource.startswith("lendinghosts")}
        assert others == set(), "nobody else writes to the host either"


async def test_an_edit_of_one_upstream_cuts_no_stream_of_another(path: WholePath, standin: OpenAiStandin):
    spec = spec_of(standin)
    spec["upstreams"].append({**spec["upstreams"][0], "name": "other", "port": free_port()})
    async with lent(path, spec) as agent:
        assert "stopped listening" not in agent.text
        edited = deepcopy(spec)
        edited["upstreams"][1]["slots"] = 3
        await asyncio.to_thread(path.apply, edited)
        await seconds_until(lambda: "stopped listening" in agent.text, 10.0, lambda: agent.text)
        await seconds_until(lambda: path.is_now("ConfigApplied", "True"), 10.0, lambda: agent.text)
        assert agent.text.count("stopped listening") == 1
        assert "stopped listening upstream=other" in agent.text


async def test_an_edit_that_cannot_run_changes_nothing_and_is_named(path: WholePath, standin: OpenAiStandin):
    spec = spec_of(standin)
    token = ""
    async with lent(path, spec) as agent:
        token = await asyncio.to_thread(path.token)
        wrong = deepcopy(spec)
        wrong["upstreams"][0]["credentialSecretRef"] = {"name": "missing", "key": "token"}
        await asyncio.to_thread(path.apply, wrong)
        await seconds_until(lambda: path.is_now("ConfigApplied", "False"), 10.0, lambda: agent.text)
        found = path.hosts.get("lendinghosts", NAME) or {}
        message = next(
            one["message"] for one in found["status"]["conditions"] if one["type"] == "ConfigApplied"
        )
        assert "spec.upstreams[0].credentialSecretRef" in message
        assert "stopped listening" not in agent.text
        assert await asks(path, spec, token) == 200
        secret = ("create", "secret", "generic", "missing", "--from-literal=token=sesame")
        await asyncio.to_thread(path.cluster.kubectl, *secret, "-n", path.hosts.namespace)
        took = await seconds_until(lambda: path.is_now("ConfigApplied", "True"), 35.0, lambda: agent.text)
        note("secret_to_applied_s", took)
        assert (agent.state / "secrets" / "missing" / "token").read_text() == "sesame"


@pytest.mark.parametrize(
    ("leave", "come_back", "gone_s"),
    [
        ("kill", "start", 20.0),
        ("freeze", "thaw", 20.0),
        pytest.param("kill", "start", 150.0, marks=pytest.mark.slow),
        pytest.param("freeze", "thaw", 150.0, marks=pytest.mark.slow),
    ],
)
async def test_the_api_server_goes_away_and_comes_back(
    path: WholePath, standin: OpenAiStandin, leave: str, come_back: str, gone_s: float
):
    spec = spec_of(standin)
    async with lent(path, spec) as agent:
        token = await asyncio.to_thread(path.token)
        used = agent.cpu_seconds
        await asyncio.to_thread(getattr(path.cluster.api, leave))
        await asyncio.sleep(gone_s / 2)
        assert await asks(path, spec, token) == 200
        await asyncio.sleep(gone_s / 2)
        note("cpu_outage_percent", (agent.cpu_seconds - used) / gone_s * 100)
        assert agent.text.count("cluster unreachable") == 1
        await asyncio.to_thread(getattr(path.cluster.api, come_back))
        off = {**spec, "lending": False}
        await asyncio.to_thread(path.apply, off)
        took = await seconds_until(
            lambda: path.is_now("Ready", "True") and path.is_now("Lendable", "False"),
            30.0,
            lambda: agent.text,
        )
        note("return_to_report_s", took)
        assert await asks(path, spec, token) == 503


async def test_a_host_that_is_deleted_while_the_agent_is_cut_off_is_lent_no_more(
    path: WholePath, standin: OpenAiStandin
):
    spec = spec_of(standin)
    async with lent(path, spec) as agent:
        token = await asyncio.to_thread(path.token)
        agent.stopped()
        await asyncio.to_thread(path.cluster.kubectl, "delete", "lh", NAME, "-n", path.hosts.namespace)
        agent.resumed()
        await seconds_until(lambda: " idle why=" in agent.text, 30.0, lambda: agent.text)
        assert await asks(path, spec, token) == 0


async def test_an_agent_starts_and_lends_while_the_api_server_is_gone(
    path: WholePath, standin: OpenAiStandin
):
    spec = spec_of(standin)
    async with lent(path, spec) as agent:
        token = await asyncio.to_thread(path.token)
        agent.kill()
        await asyncio.to_thread(path.cluster.api.kill)
        agent.start()
        async with asyncio.timeout(30.0):
            while await asks(path, spec, token) != 200:  # noqa: ASYNC110 - another process sets no event
                await asyncio.sleep(0.1)
        assert await asyncio.to_thread(agent.end) == 0
