"""`kubectl apply` makes a machine lend, and `kubectl get lendinghosts` tells the truth about it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import pytest

from standins.whole_path import NAME, WholePath, lending, note, seconds_until, whole_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.kube_lab import KubeLab
    from lab.llama_lab import LlamaLab
    from lab.logind_lab import LogindLab

pytestmark = pytest.mark.kube

RELEASE_S = 3.0
ENDLESS = {"max_tokens": 7500, "ignore_eos": True, "stream": True}
PROMPT = {"model": "lab", "messages": [{"role": "user", "content": "go on"}], **ENDLESS}


@pytest.fixture
def path(own_kube: KubeLab, tmp_path: Path) -> Iterator[WholePath]:
    with whole_path(own_kube, tmp_path) as made:
        yield made


@pytest.mark.logind
@pytest.mark.llama
async def test_from_apply_to_the_owners_return_and_the_agents_death(
    path: WholePath, logind_lab: LogindLab, llama: LlamaLab
):
    await asyncio.to_thread(path.apply, {"external": {"address": "192.168.1.20"}})
    agent = await asyncio.to_thread(path.joined)
    with agent:
        told = lambda: agent.text[-4000:] + path.operator.log.read_text()[-2000:]  # noqa: E731
        await seconds_until(lambda: path.is_now("AgentConnected", "True"), 30.0, told)

        spec = lending(
            llama.url,
            owner={"presence": "auto", "releaseAfter": f"{RELEASE_S:g}s"},
        )
        await asyncio.to_thread(path.apply, spec)
        took = await seconds_until(
            lambda: path.is_now("Ready", "True") and path.is_now("Lendable", "True"), 10.0, told
        )
        note("apply_to_lendable_s", took)
        shown = await asyncio.to_thread(path.cluster.kubectl, "get", "lh", "-n", path.hosts.namespace)
        assert shown.stdout.splitlines()[1].split()[:3] == [NAME, "True", "True"]

        url = f"http://127.0.0.1:{spec['upstreams'][0]['port']}/v1/chat/completions"
        headers = {"Authorization": f"Bearer {await asyncio.to_thread(path.token)}"}
        async with aiohttp.ClientSession() as http, http.post(url, json=PROMPT, headers=headers) as answer:
            assert answer.status == 200
            await answer.content.readany()
            cut = asyncio.get_running_loop().create_task(answer.read())
            desk = await logind_lab.create(type="wayland", seat="seat0")
            took = await seconds_until(
                lambda: path.condition("Lendable") == ("False", "OwnerActive"), 5.0, told
            )
            note("login_to_status_s", took)
            assert took <= 1.0
            with pytest.raises(aiohttp.ClientPayloadError):
                await cut

        await logind_lab.logout(desk)
        took = await seconds_until(lambda: path.condition("Lendable")[0] == "True", RELEASE_S + 10.0, told)
        note("logout_to_lendable_s", took)
        assert took >= RELEASE_S - 1.0

        agent.kill()
        took = await seconds_until(
            lambda: path.condition("AgentConnected")[0] == path.condition("Lendable")[0] == "Unknown",
            45.0,
            told,
        )
        note("death_to_unknown_s", took)
        assert path.condition("Ready")[0] == "False"

        agent.start()
        await seconds_until(
            lambda: path.condition("Ready")[0] == path.condition("Lendable")[0] == "True", 30.0, told
        )
