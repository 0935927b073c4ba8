from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from standins.clock import FakeClock
from standins.sink import RecordingSink
from vacancy_agent.collect.capacity import DeviceLoop, HostLoop
from vacancy_agent.collect.freshness import Freshness
from vacancy_agent.collect.host import HostProbe
from vacancy_agent.core.facts import CpuCapacity, Instant, MemoryCapacity, MiB, Ready, Seconds, Unknown
from vacancy_agent.core.settings import ResourceType

if TYPE_CHECKING:
    from vacancy_agent.core.facts import Capacity, Reading

pytestmark = pytest.mark.looptime


class Device:
    def __init__(self, clock: FakeClock, takes: float) -> None:
        self.clock = clock
        self.takes = takes

    async def sample(self) -> Reading[Capacity]:
        at = self.clock.now()
        await asyncio.sleep(self.takes)
        self.clock.advance(self.takes)
        return Ready(MemoryCapacity(MiB(1), MiB(2)), at)


async def sampled(takes: float, seconds: float) -> list[Reading[Capacity]]:
    clock, sink = FakeClock(0.0), RecordingSink()
    loop = DeviceLoop("gpu", Device(clock, takes), sink, clock, Freshness(Seconds(15.0)), Seconds(3.0))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds):
            await loop.cadence.run()
    return sink.capacity["gpu"]


async def test_a_device_is_read_at_the_cadence() -> None:
    assert await sampled(0.0, 7) == [Ready(MemoryCapacity(MiB(1), MiB(2)), Instant(0.0))] * 3


async def test_a_reading_that_took_too_long_is_unknown() -> None:
    (reading,) = await sampled(16.0, 17)
    assert isinstance(reading, Unknown)


def host(sink: RecordingSink) -> HostLoop:
    kinds = {"ram": ResourceType.MEMORY, "cpu": ResourceType.CPU}
    return HostLoop(kinds, HostProbe(FakeClock()), sink, Seconds(3.0))


async def test_the_first_load_does_not_wait_for_the_second_poll() -> None:
    sink = RecordingSink()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await host(sink).run()
    assert len(sink.capacity["cpu"]) == 2


def test_inline_samples_are_written_before_the_call_returns() -> None:
    sink = RecordingSink()
    loop = host(sink)
    loop.sample_now(["ram", "gpu"])
    (reading,) = sink.capacity["ram"]
    assert isinstance(reading, Ready)
    assert isinstance(reading.value, MemoryCapacity)
    assert set(sink.capacity) == {"ram"}
    loop.sample_now(["cpu"])
    (first,) = sink.capacity["cpu"]
    assert not isinstance(first, Ready) or isinstance(first.value, CpuCapacity)
