"""A11: the machine slept; its GPU is gone, work runs on the processor, connections hang, old readings count.

Seen as ollama/ollama#5464 and #10053, gpustack/gpustack#871. Right: not lendable before the sleep; after it
nothing is admitted before presence and capacity were read anew; a model that is not on the card refuses; the
cluster is reached again within 30 s; deadlines count the sleep.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from lab.nvidia_smi_lab import device, process
from standins import membership
from standins.agents import lender, manifest
from standins.borrowers import Borrower
from standins.clock import AheadClock
from standins.desks import lent_desk, owned
from standins.kube_api import KubeApi
from standins.until import until
from vacancy_agent.core.board import Pressure
from vacancy_agent.core.facts import Ready, Stale
from vacancy_agent.core.gate import Ask, decide
from vacancy_agent.core.verdict import Refuse

if TYPE_CHECKING:
    from pathlib import Path

    from lab.logind_lab import LogindLab
    from lab.nvidia_smi_lab import NvidiaSmiLab
    from standins.agents import Lender
    from standins.ollama_server import OllamaStandin
    from standins.openai_server import OpenAiStandin

pytestmark = pytest.mark.component
NIGHT = 8 * 3600.0
CARD = "GPU-5c89852c-d268-4dfc-8d9a-7b3d3a9a1b2c"
LONG = {"chunks": 600, "every_s": 0.05}


async def lendable(lent: Lender) -> tuple[str, str]:
    """Status and reason of the condition."""
    for condition in (await lent.status())["conditions"]:
        if condition["type"] == "Lendable":
            return condition["status"], condition["reason"]
    return "", ""


@pytest.mark.logind
async def test_not_lendable_before_the_sleep_and_after_it_only_on_fresh_readings(
    standin: OpenAiStandin, logind_lab: LogindLab, tmp_path: Path
) -> None:
    clock = AheadClock()
    async with lent_desk(tmp_path, standin, logind_lab, clock) as lent:
        board = lent.agent.host.board
        await logind_lab.sleep()
        await until(lambda: board.asleep)
        assert (await lent.upstream())["lendable"] is False
        async with lent.chat() as refused:
            assert (refused.status, refused.headers["X-Vacancy-Reason"]) == (503, "owner_active")
            assert refused.headers["Retry-After"] == "5"
        await until(lambda: isinstance(board.presence, Stale))
        lent.agent.findings.look()
        assert await lendable(lent) == ("False", "OwnerActive")
        clock.sleep(NIGHT)
        woke = clock.now()
        logind_lab.wake()
        await lent.until(lambda up: up["lendable"], within=20)
        presence, memory = board.presence, board.capacity["ram"]
        assert isinstance(presence, Ready)
        assert isinstance(memory, Ready)
        assert min(presence.at, memory.at) >= woke
        async with lent.chat() as got:
            assert got.status == 200


@pytest.mark.logind
async def test_at_the_moment_of_waking_nothing_is_known(
    standin: OpenAiStandin, logind_lab: LogindLab, nvidia_smi: NvidiaSmiLab, tmp_path: Path
) -> None:
    """Whoever asks in the very call that tells of the end of the sleep is refused, by all that is asked."""
    nvidia_smi.devices(device(CARD))
    nvidia_smi.processes(process(CARD, 4_000_000, sm=1))
    gpu = {"name": "gpu", "type": "nvidia", "pressure": {"mode": "fixed", "thresholdPercent": 20}}
    document = owned(standin.url, resource="gpu", spec_resources=[gpu])
    clock = AheadClock()
    async with lender(tmp_path / "agent", document, clock) as lent:
        await lent.until(lambda up: up["lendable"])
        host = lent.agent.host
        seen: list[object] = []

        def looked() -> None:
            verdict = decide(host.board, Ask("up"), clock.now(), clock.wall())
            seen.extend((verdict, host.board.capacity["gpu"], host.board.pressure["gpu"]))

        lent.agent.readings.on_wake.append(looked)
        clock.sleep(NIGHT)
        await until(lambda: seen, within=20)
        verdict, capacity, pressure = seen
        assert isinstance(verdict, Refuse)
        assert isinstance(capacity, Stale)
        assert pressure is Pressure.UNKNOWN
        await lent.until(lambda up: up["lendable"], within=20)
        assert [event for event, _ in lent.told].count("resumed") == 1


@pytest.mark.logind
async def test_a_drain_that_began_before_the_sleep_is_over_after_it(
    standin: OpenAiStandin, logind_lab: LogindLab, tmp_path: Path
) -> None:
    clock = AheadClock()
    drain: dict[str, Any] = {"onOwnerReturn": "drain", "drainTimeout": "30m"}
    async with (
        lent_desk(tmp_path, standin, logind_lab, clock, **drain) as lent,
        await Borrower.at(lent.port, lent.tokens.borrow) as borrower,
    ):
        await borrower.chat(stream=True, standin=LONG)
        await borrower.until(b"w1 ")
        await logind_lab.create(type="wayland", seat="seat0")
        await until(lambda: lent.agent.reclaims)
        assert lent.agent.reclaims["up"].phase == "waiting"
        clock.sleep(NIGHT)
        began = time.monotonic()
        assert await borrower.end() == "reset"
        assert time.monotonic() - began < 10


async def test_a_model_that_came_back_on_the_processor_is_refused(
    ollama_standin: OllamaStandin, tmp_path: Path
) -> None:
    """`/api/ps` shows `size_vram: 0`."""
    document = manifest(
        ollama_standin.url,
        dialect="ollama",
        resource="gpu",
        models={"default": {"minFreeMiB": 100}},
        spec_resources=[{"name": "gpu", "type": "nvidia"}],
    )
    clock = AheadClock()
    async with lender(tmp_path / "agent", document, clock) as lent:
        await lent.until(lambda up: up["lendable"])
        async with lent.chat(model="small") as got:
            assert got.status == 200
        clock.sleep(NIGHT)
        ollama_standin.let_go()
        ollama_standin.behave(on_card=0.0, keep_alive_s=NIGHT + 300)  # its clock did not run ahead
        await until(lambda: [1 for event, _ in lent.told if event == "resumed"], within=20)
        await lent.until(lambda up: up["lendable"], within=20)
        async with lent.chat(model="small") as got:
            assert got.status == 200, "nobody can know before it is loaded"
        await lent.until(lambda up: up["models"] and up["active"] == 0)
        async with lent.chat(model="small") as refused:
            assert refused.status == 503
        assert refused.headers["X-Vacancy-Reason"] == "upstream_not_on_gpu"
        assert refused.headers["Retry-After"] == "30"


async def test_the_cluster_is_reached_again_within_thirty_seconds(
    standin: OpenAiStandin, tmp_path: Path
) -> None:
    async with KubeApi() as api:
        document = manifest(standin.url)
        membership.serve(api, membership.spec(document))
        async with membership.member(tmp_path, api.url) as joined:
            await until(lambda: membership.condition(api, "Lendable").get("status") == "True", within=30)
            api.half_open()
            before = len(api.asked)
            began = time.monotonic()
            readings, clock = joined.whole.agent.readings, joined.whole.agent.host.clock
            readings.resumed(clock.now())
            await until(lambda: [one for one in api.asked[before:] if "/leases/" in one.path], within=30)
            text = membership.agent_json(membership.spec(document) | {"lending": False}, generation=2)
            membership.config(api, text)
            await until(lambda: membership.condition(api, "Lendable").get("status") == "False", within=30)
            assert time.monotonic() - began < 30
