from __future__ import annotations

import asyncio
import itertools
import statistics
from contextlib import asynccontextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from lab.nvidia_smi_lab import NvidiaSmiLab, device, process
from standins.clock import FakeClock
from standins.sink import RecordingSink
from standins.until import until
from vacancy_agent.clock import SystemClock
from vacancy_agent.collect.observers import Observers
from vacancy_agent.core.facts import Evidence, Instant, MemoryCapacity, Presence, Ready, Seconds, Unknown
from vacancy_agent.core.owner_load import Attributed, Failed
from vacancy_agent.core.settings import (
    HostSettings,
    LendingSettings,
    OwnerSettings,
    PressureMode,
    PressureSettings,
    ResourceSettings,
    ResourceType,
    SamplingSettings,
)
from vacancy_agent.platform.presence import HEADLESS, PresenceSource
from vacancy_agent.platform.select import presence_source

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from lab.logind_lab import LogindLab
    from vacancy_agent.clock import Clock

pytestmark = pytest.mark.component
GPU = "GPU-0a11c0de-0000-4000-8000-000000000000"
RESOURCES = (
    ResourceSettings("gpu", ResourceType.NVIDIA),
    ResourceSettings("radeon", ResourceType.AMD),
    ResourceSettings("ram", ResourceType.MEMORY),
    ResourceSettings("cpu", ResourceType.CPU),
    ResourceSettings("off", ResourceType.NVIDIA, enabled=False),
)


def settings(interval: float, *resources: ResourceSettings) -> HostSettings:
    return HostSettings(
        lending=LendingSettings(),
        owner=OwnerSettings(idle_after=Seconds(0.0)),
        sampling=SamplingSettings(interval=Seconds(interval)),
        resources=MappingProxyType({resource.name: resource for resource in resources or RESOURCES}),
        upstreams=MappingProxyType({}),
    )


@asynccontextmanager
async def observing(
    host: HostSettings, clock: Clock | None = None, source: PresenceSource | None = None
) -> AsyncIterator[tuple[Observers, RecordingSink]]:
    sink, ticking = RecordingSink(), clock or SystemClock()
    observers = Observers(host, sink, ticking, source or presence_source(host, ticking), {})
    async with asyncio.TaskGroup() as group:
        task = group.create_task(observers.run())
        try:
            yield observers, sink
        finally:
            task.cancel()


async def test_every_enabled_resource_gets_readings(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(GPU, free=20000))
    async with observing(settings(0.1), source=HEADLESS) as (_, sink):
        await sink.until(lambda s: s.presence and len(s.capacity["cpu"]) > 2 and len(s.capacity["gpu"]) > 1)
        assert isinstance(sink.presence[0], Ready)
        gpu, ram = sink.capacity["gpu"][0], sink.capacity["ram"][0]
        assert isinstance(gpu, Ready)
        assert isinstance(gpu.value, MemoryCapacity)
        assert gpu.value.free == 20000
        assert isinstance(ram, Ready)
        assert isinstance(sink.capacity["cpu"][0], Unknown), "a load of no time at all is not zero"
        assert isinstance(sink.capacity["radeon"][0], Unknown)
        assert "off" not in sink.capacity
        await sink.until(lambda s: isinstance(s.capacity["cpu"][-1], Ready))


@pytest.mark.parametrize("mode", ["hang", "ignore-term", "orphan-hang", "flood"])
async def test_a_gpu_probe_that_hangs_or_floods_does_not_move_the_presence_cadence(
    nvidia_smi: NvidiaSmiLab, mode: str
) -> None:
    nvidia_smi.mode(mode)
    interval = 0.05
    async with observing(settings(interval), source=HEADLESS) as (_, sink):
        await until(lambda: nvidia_smi.calls)
        sink.presence.clear()
        await sink.until(lambda s: len(s.presence) >= 30)
        times = [reading.at for reading in sink.presence if isinstance(reading, Ready)]
        if mode != "flood":
            assert not any(isinstance(reading, Ready) for reading in sink.capacity["gpu"])
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert statistics.median(gaps) < 4 * interval
    assert max(gaps) < 2.5, "half the time for which the probe hangs"


async def test_a_hung_probe_does_not_hold_up_the_end(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.mode("ignore-term")
    async with asyncio.timeout(4):
        async with observing(settings(3.0), source=HEADLESS) as (observers, _):
            await until(lambda: nvidia_smi.calls)
            (runner,) = observers._runners
            child = runner._child
            assert child is not None
    await until(child.gone)
    assert observers.abandoned_probes == 0


LEARNED = PressureSettings(mode=PressureMode.LEARNED)


async def test_a_load_is_sampled_where_it_is_judged_and_by_its_own_cadence(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(GPU))
    nvidia_smi.processes(process(GPU, 4_000_000, sm=7))
    judged = ResourceSettings("gpu", ResourceType.NVIDIA, pressure=LEARNED)
    radeon = ResourceSettings("radeon", ResourceType.AMD, pressure=LEARNED)
    quick = SamplingSettings(interval=Seconds(1000.0), pressure_interval=Seconds(0.1))
    host = replace(settings(1.0, judged, radeon, RESOURCES[2]), sampling=quick)
    async with observing(host, source=HEADLESS) as (_, sink):
        await sink.until(lambda s: len(s.pressure["gpu"]) > 3 and s.pressure["radeon"])
        assert len(nvidia_smi.calls) == 1, "the capacity has its own"
        (first, *_) = sink.pressure["gpu"]
        assert isinstance(first, Attributed), "the device was looked at before"
        assert (first.device, first.owner) == (GPU, 7.0)
        assert first.total is not None
        assert first.total.load == 0.0
        assert isinstance(sink.pressure["radeon"][0], Failed)
        assert sink.pressure.keys() == {"gpu", "radeon"}


async def test_a_load_that_nobody_judges_is_not_sampled(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(GPU))
    async with observing(settings(0.1), source=HEADLESS) as (_, sink):
        await sink.until(lambda s: len(s.capacity["gpu"]) > 2)
        assert sink.pressure == {}
        assert nvidia_smi.pmon_calls == []


async def test_a_hung_pmon_moves_no_other_cadence(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(GPU))
    nvidia_smi.pmon_mode("hang")
    judged = ResourceSettings("gpu", ResourceType.NVIDIA, pressure=LEARNED)
    async with observing(settings(0.05, judged), source=HEADLESS) as (_, sink):
        await until(lambda: nvidia_smi.pmon_calls)
        sink.presence.clear()
        sink.capacity.clear()
        await sink.until(lambda s: len(s.presence) >= 30 and len(s.capacity["gpu"]) >= 5)
        assert sink.pressure == {}, "it still hangs"


async def test_inline_samples_are_there_when_the_call_returns(nvidia_smi: NvidiaSmiLab) -> None:
    async with observing(settings(100.0), source=HEADLESS) as (observers, sink):
        await sink.until(lambda s: s.capacity["ram"])
        before = len(sink.capacity["ram"])
        observers.sample_now(["ram"])
        assert len(sink.capacity["ram"]) == before + 1


async def test_a_sample_after_a_job_begins_after_the_call(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(GPU, free=20000))
    clock = SystemClock()
    async with observing(settings(100.0), source=HEADLESS) as (observers, sink):
        await sink.until(lambda s: s.capacity["gpu"])
        nvidia_smi.devices(device(GPU, free=900))
        asked = clock.now()
        assert await observers.sample(["gpu", "ram", "unheard of"], Seconds(10.0))
        gpu, ram = sink.capacity["gpu"][-1], sink.capacity["ram"][-1]
        for reading in (gpu, ram):
            assert isinstance(reading, Ready)
            assert reading.at >= asked
        assert isinstance(gpu, Ready)
        assert isinstance(gpu.value, MemoryCapacity)
        assert gpu.value.free == 900


async def test_a_sample_after_a_job_is_waited_for_only_so_long(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.mode("hang")
    async with observing(settings(100.0), source=HEADLESS) as (observers, sink):
        async with asyncio.timeout(4):
            assert await observers.sample(["gpu"], Seconds(0.1)) is False
        assert len(sink.capacity["gpu"]) == 0


class Watched:
    """A presence source whose signals the test sends."""

    def __init__(self) -> None:
        self.reads = 0
        self.hear: tuple[object, ...] = ()

    async def read(self) -> Presence:
        self.reads += 1
        return Presence(Evidence.ABSENT, "nobody is logged in")

    async def watch(self, changed: object, sleep: object) -> None:
        self.hear = (changed, sleep)
        await asyncio.Event().wait()

    async def close(self) -> None:
        pass


async def test_a_sleep_that_nobody_announced_is_seen_from_the_clocks(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(GPU))
    clock, source = FakeClock(), Watched()
    async with observing(settings(0.05), clock, source) as (_, sink):
        await sink.until(lambda s: s.capacity["gpu"] and s.presence)
        assert sink.sleeps == []
        clock.sleep(28_800)
        woken = clock.now()
        await sink.until(lambda s: s.sleeps)
        assert sink.sleeps == [("resumed", woken)]
        sink.capacity.clear()
        await sink.until(
            lambda s: all(
                any(isinstance(r, Ready) and r.at >= woken for r in s.capacity[name])
                for name in ("gpu", "ram")
            )
        )
        await sink.until(lambda s: isinstance(s.presence[-1], Ready) and s.presence[-1].at >= woken)
        assert sink.sleeps == [("resumed", woken)]


async def test_announced_sleep_makes_every_loop_sample_again(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(GPU))
    nvidia_smi.processes()
    clock, source = FakeClock(), Watched()
    judged = ResourceSettings("gpu", ResourceType.NVIDIA, pressure=LEARNED)
    rare = SamplingSettings(interval=Seconds(1000.0), pressure_interval=Seconds(1000.0))
    host = replace(settings(1000.0, judged, *RESOURCES[1:]), sampling=rare)
    async with observing(host, clock, source) as (observers, sink):
        await sink.until(lambda s: s.capacity["gpu"] and len(s.capacity["cpu"]) > 1 and s.presence)
        await sink.until(lambda s: len(s.pressure["gpu"]) == 1)
        for probe in observers._nvidia.values():
            for _ in range(5):
                probe.backoff.miss()
        _, sleep = source.hear
        assert callable(sleep)
        sleep(True)
        clock.sleep(60)
        before = {name: len(readings) for name, readings in sink.capacity.items()}
        sleep(False)
        await sink.until(lambda s: all(len(s.capacity[name]) > before[name] for name in before))
        await sink.until(lambda s: len(s.pressure["gpu"]) == 2)
        assert [name for name, _ in sink.sleeps] == ["suspending", "resumed"]
        assert isinstance(sink.capacity["gpu"][-1], Ready), "a back-off from before the sleep is forgotten"
        assert clock.now() == Instant(1060.0)


@pytest.mark.logind
async def test_an_owner_who_returns_is_in_the_sink_long_before_the_next_poll(logind_lab: LogindLab) -> None:
    desk = await logind_lab.create(seat="seat0")
    await logind_lab.hint(desk, locked=True)
    async with observing(settings(100.0, RESOURCES[2])) as (_, sink):
        await sink.until(lambda s: s.presence)
        assert isinstance(sink.presence[-1], Ready)
        assert sink.presence[-1].value.evidence is Evidence.ABSENT
        await logind_lab.hint(desk, locked=False)
        await sink.until(lambda s: isinstance(s.presence[-1], Ready) and _is_present(s.presence[-1]))


def _is_present(reading: object) -> bool:
    return isinstance(reading, Ready) and reading.value.evidence is Evidence.PRESENT


@pytest.mark.logind
async def test_a_bus_that_dies_is_unknown_at_once(logind_lab: LogindLab) -> None:
    async with observing(settings(100.0, RESOURCES[2])) as (_, sink):
        await sink.until(lambda s: s.presence)
        assert isinstance(sink.presence[-1], Ready)
        logind_lab.kill_bus()
        await sink.until(lambda s: isinstance(s.presence[-1], Unknown))


@pytest.mark.logind
async def test_a_stopped_logind_is_unknown_and_comes_back_by_itself(logind_lab: LogindLab) -> None:
    async with observing(settings(0.2, RESOURCES[2])) as (_, sink):
        await sink.until(lambda s: s.presence)
        logind_lab.freeze()
        await sink.until(lambda s: isinstance(s.presence[-1], Unknown))
        logind_lab.thaw()
        await sink.until(lambda s: isinstance(s.presence[-1], Ready))


@pytest.mark.logind
async def test_a_real_suspend_is_told_before_and_after(logind_lab: LogindLab) -> None:
    async with observing(settings(100.0, RESOURCES[2])) as (_, sink):
        await sink.until(lambda s: s.presence and s.capacity["ram"])
        await asyncio.sleep(0.7)  # the second sample of the start is over
        await logind_lab.sleep()
        await sink.until(lambda s: [name for name, _ in s.sleeps] == ["suspending"])
        before = len(sink.capacity["ram"])
        logind_lab.wake()
        await sink.until(lambda s: [name for name, _ in s.sleeps] == ["suspending", "resumed"])
        await sink.until(lambda s: len(s.capacity["ram"]) > before)
