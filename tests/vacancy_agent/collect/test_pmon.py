from __future__ import annotations

import os
from typing import TYPE_CHECKING

import psutil
import pytest

from lab.nvidia_smi_lab import NvidiaSmiLab, device, process
from standins.clock import FakeClock
from vacancy_agent.clock import SystemClock
from vacancy_agent.collect.pmon import PmonProbe
from vacancy_agent.collect.runner import ProbeRunner
from vacancy_agent.core.facts import Instant, Percent, ProcessIdentity, Seconds
from vacancy_agent.core.owner_load import Attributed, Failed, NotPossible, Total
from vacancy_agent.core.parse.nvidia import GpuIdentity
from vacancy_agent.upstreams.process import started_at

if TYPE_CHECKING:
    from vacancy_agent.clock import Clock

pytestmark = pytest.mark.component
FIRST = "GPU-0a11c0de-0000-4000-8000-000000000000"
SECOND = "GPU-0a11c0de-0000-4000-8000-000000000001"
TOTAL = Total(Percent(44.0), Instant(1.0))
CARD = GpuIdentity(FIRST)
GONE = 4_000_000  # past what a kernel hands out by default


def probe(
    identity: GpuIdentity | None = CARD,
    *,
    clock: Clock | None = None,
    served: dict[str, ProcessIdentity] | None = None,
    asleep: bool = False,
    fixed: bool = False,
    deadline: float = 20.0,
) -> PmonProbe:
    return PmonProbe(
        ProbeRunner("pmon", SystemClock(), deadline=Seconds(deadline)),
        clock or SystemClock(),
        identity=lambda: identity,
        total=lambda: TOTAL,
        served=served or {},
        is_suspended=lambda _: asleep,
        may_use_total=fixed,
    )


@pytest.fixture
def card(nvidia_smi: NvidiaSmiLab) -> NvidiaSmiLab:
    nvidia_smi.devices(device(FIRST), device(SECOND, pci__bus_id="00000000:02:00.0"))
    nvidia_smi.processes()
    return nvidia_smi


def me() -> dict[str, ProcessIdentity]:
    return {"llm": ProcessIdentity(os.getpid(), started_at(psutil.Process()))}


async def test_asks_for_one_device_and_gets_its_processes(card: NvidiaSmiLab) -> None:
    card.processes(
        process(FIRST, GONE, sm=60), process(FIRST, GONE + 1, sm=None, kind="C"), process(SECOND, GONE, sm=99)
    )
    before = SystemClock().now()
    sample = await probe().sample()
    assert isinstance(sample, Attributed)
    assert (sample.device, sample.owner, len(sample.users), sample.total) == (FIRST, 60.0, 2, TOTAL)
    assert before <= sample.at <= SystemClock().now()
    assert card.pmon_calls == [["pmon", "-i", FIRST, "-c", "1"]]


async def test_a_served_process_is_subtracted(card: NvidiaSmiLab) -> None:
    """This test's own process stands for the server; the game's is none that runs."""
    card.processes(process(FIRST, os.getpid(), sm=95, kind="C"), process(FIRST, GONE, sm=4))
    sample = await probe(served=me()).sample()
    assert isinstance(sample, Attributed)
    assert (sample.owner, sample.seen) == (4.0, {"llm"})
    other = {"llm": ProcessIdentity(os.getpid(), 1.0)}
    again = await probe(served=other).sample()
    assert isinstance(again, Attributed)
    assert again.owner == 99.0, "the number alone is no identity"


async def test_a_card_without_processes_has_no_load(card: NvidiaSmiLab) -> None:
    sample = await probe().sample()
    assert isinstance(sample, Attributed)
    assert (sample.users, sample.owner) == ((), 0.0)


async def test_nothing_is_asked_of_a_card_that_was_not_seen_yet(card: NvidiaSmiLab) -> None:
    assert await probe(None).sample() == Failed("the GPU has not been identified yet")
    assert card.pmon_calls == []


async def test_a_card_that_sleeps_is_not_woken_and_has_no_load(card: NvidiaSmiLab) -> None:
    sample = await probe(GpuIdentity(FIRST, "0000:01:00.0"), clock=FakeClock(), asleep=True).sample()
    assert sample == Attributed(FIRST, (), Instant(1000.0))
    assert card.pmon_calls == []


async def test_a_driver_that_cannot_tell_leaves_the_total_at_best(card: NvidiaSmiLab) -> None:
    card.pmon_not_supported()
    said = await probe().sample()
    assert isinstance(said, NotPossible)
    assert "Not supported on the device(s)" in said.why
    assert await probe(fixed=True).sample() == TOTAL


async def test_another_failure_may_pass(card: NvidiaSmiLab) -> None:
    failed = await probe(GpuIdentity("GPU-gone")).sample()
    assert failed == Failed("nvidia-smi pmon failed: No devices were found")


async def test_a_hung_pmon_is_left_alone_after_three_times(card: NvidiaSmiLab) -> None:
    card.pmon_mode("hang")
    clock = FakeClock()
    one = probe(clock=clock, deadline=0.2)
    for _ in range(3):
        assert isinstance(await one.sample(), Failed)
    calls = len(card.pmon_calls)
    left = await one.sample()
    assert left == Failed("nvidia-smi pmon missed 3 deadlines in a row")
    assert len(card.pmon_calls) == calls
    card.pmon_mode("ok")
    one.woke()
    assert isinstance(await one.sample(), Attributed)
