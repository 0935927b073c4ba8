from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lab.nvidia_smi_lab import NvidiaSmiLab, device
from standins.clock import FakeClock
from standins.nvidia_samples import FOLDER, Sample, samples
from vacancy_agent.clock import SystemClock
from vacancy_agent.collect.nvidia import NvidiaProbe
from vacancy_agent.collect.runner import ProbeRunner
from vacancy_agent.core.facts import Instant, MemoryCapacity, MiB, Percent, Reading, Ready, Seconds, Unknown
from vacancy_agent.core.settings import ResourceSettings, ResourceType

if TYPE_CHECKING:
    from vacancy_agent.clock import Clock
    from vacancy_agent.core.facts import Capacity

pytestmark = pytest.mark.component

FIRST = "GPU-0a11c0de-0000-4000-8000-000000000000"
SECOND = "GPU-0a11c0de-0000-4000-8000-000000000001"
HOST: Reading[Capacity] = Ready(MemoryCapacity(MiB(90_000), MiB(120_000)), Instant(1.0))


class Sleepers:
    """Which PCI addresses are powered down, and who asked."""

    def __init__(self, *suspended: str) -> None:
        self.suspended = set(suspended)
        self.asked: list[str] = []

    def __call__(self, pci: str) -> bool:
        self.asked.append(pci)
        return pci in self.suspended


def probe(
    name: str | None = None,
    *,
    unified: bool = False,
    sleepers: Sleepers | None = None,
    deadline: float = 20.0,
    clock: Clock | None = None,
) -> NvidiaProbe:
    settings = ResourceSettings("gpu", ResourceType.NVIDIA, device=name, unified=unified)
    runner = ProbeRunner("nvidia-smi", SystemClock(), deadline=Seconds(deadline))
    return NvidiaProbe(
        settings,
        runner,
        clock or SystemClock(),
        host_memory=lambda: HOST,
        is_suspended=sleepers or Sleepers(),
    )


def capacity(reading: Reading[Capacity]) -> MemoryCapacity:
    assert isinstance(reading, Ready), reading
    assert isinstance(reading.value, MemoryCapacity)
    return reading.value


def why(reading: Reading[Capacity]) -> str:
    assert isinstance(reading, Unknown), reading
    return reading.why


async def test_the_only_device(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(FIRST, total=24564, free=20000, utilization__gpu=7))
    before = SystemClock().now()
    reading = await probe().sample()
    assert capacity(reading) == MemoryCapacity(MiB(20000), MiB(24564), Percent(7.0))
    assert isinstance(reading, Ready)
    assert before <= reading.at <= SystemClock().now()
    assert nvidia_smi.calls == [
        [
            "--query-gpu=uuid,pci.bus_id,memory.total,memory.used,memory.free,utilization.gpu,mig.mode.current,driver_version,name",
            "--format=csv,noheader,nounits",
        ]
    ]


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        (SECOND, SECOND),
        ("0000:02:00.0", "0000:02:00.0"),
        ("00000000:02:00.0", "0000:02:00.0"),
        ("02:00.0", "0000:02:00.0"),
    ],
)
async def test_a_device_by_its_identity(nvidia_smi: NvidiaSmiLab, name: str, asked: str) -> None:
    nvidia_smi.devices(device(FIRST, free=1), device(SECOND, free=2, pci__bus_id="00000000:02:00.0"))
    assert capacity(await probe(name).sample()).free == 2
    assert nvidia_smi.calls[0][:2] == ["-i", asked]


async def test_one_dead_card_does_not_hide_the_other(nvidia_smi: NvidiaSmiLab) -> None:
    lost: dict[str, Any] = dict.fromkeys(
        ("memory__total", "memory__free", "memory__used", "name"), "[GPU is lost]"
    )
    nvidia_smi.devices(
        device(FIRST, **lost),
        device(SECOND, free=2, pci__bus_id="00000000:02:00.0"),
    )
    assert "GPU is lost" in why(await probe(FIRST).sample())
    assert capacity(await probe(SECOND).sample()).free == 2


async def test_two_devices_and_none_named(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(FIRST), device(SECOND, pci__bus_id="00000000:02:00.0"))
    assert "must name its device" in why(await probe().sample())


async def test_a_device_that_is_not_there(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(FIRST))
    assert "exit status 6" in why(await probe(SECOND).sample())


async def test_an_answer_for_another_device_is_no_answer(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.replay(FOLDER / "gpus-vgpu-clock-na.txt", 0)
    asked = probe("GPU-ffffffff-0000-4000-8000-000000000000")
    asked._fields = next(s.fields for s in samples("query-gpu") if s.name == "gpus-vgpu-clock-na")
    assert "another device" in why(await asked.sample())


async def test_what_falls_without_a_reservation_is_seen_by_the_next_sample(nvidia_smi: NvidiaSmiLab) -> None:
    """gpustack/gpustack#2852: others' processes fill the card between two decisions."""
    asked = probe()
    nvidia_smi.devices(device(FIRST, total=24564, free=20000))
    assert capacity(await asked.sample()).free == 20000
    nvidia_smi.devices(device(FIRST, total=24564, free=900))
    assert capacity(await asked.sample()).free == 900


@pytest.mark.parametrize("recorded", samples("query-gpu"), ids=lambda s: s.name)
async def test_every_recorded_run_ends_in_a_reading(nvidia_smi: NvidiaSmiLab, recorded: Sample) -> None:
    nvidia_smi.replay(FOLDER / f"{recorded.name}.txt", recorded.returncode)
    asked = probe(FIRST)
    asked._fields = recorded.fields
    reading = await asked.sample()
    right = recorded.right if recorded.right == "unknown" else recorded.right[FIRST]
    if isinstance(right, dict):
        assert capacity(reading).free == right["free"]
        assert capacity(reading).utilization == right["util"]
    else:
        assert why(reading)


async def test_messages_of_failed_runs_are_passed_on(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.replay(FOLDER / "gpus-driver-mismatch.txt", 18)
    told = why(await probe().sample())
    assert told == (
        "nvidia-smi failed (exit status 18): Failed to initialize NVML: Driver/library version mismatch"
    )
    nvidia_smi.replay(FOLDER / "gpus-segfault-partial.txt", -11)
    assert "signal 11" in why(await probe().sample())


async def test_without_nvidia_smi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "nvidia-smi cannot be run" in why(await probe().sample())


async def test_an_old_driver_loses_an_optional_field_once(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(FIRST, free=5))
    nvidia_smi.unsupported("mig.mode.current", "utilization.gpu")
    asked = probe()
    assert capacity(await asked.sample()) == MemoryCapacity(MiB(5), MiB(24564), None)
    assert len(nvidia_smi.calls) == 3
    await asked.sample()
    assert len(nvidia_smi.calls) == 4, "it is remembered"


async def test_a_field_that_is_needed_is_not_dropped(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(FIRST))
    nvidia_smi.unsupported("memory.free")
    assert "exit status 2" in why(await probe().sample())
    assert len(nvidia_smi.calls) == 1


async def test_unified_memory_is_the_hosts_only_where_it_is_declared(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(FIRST, memory__total="[N/A]", memory__used="[N/A]", memory__free="[N/A]"))
    assert "memory" in why(await probe().sample())
    assert await probe(unified=True).sample() == HOST


async def test_a_lost_card_is_unknown_even_where_memory_is_unified(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(FIRST, memory__free="[GPU is lost]"))
    assert "lost" in why(await probe(unified=True).sample())


async def test_a_partitioned_card_is_unknown(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(FIRST, mig__mode__current="Enabled"))
    assert "MIG" in why(await probe().sample())


async def test_a_card_that_is_powered_down_is_not_woken(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(FIRST))
    sleepers = Sleepers("0000:01:00.0")
    assert "powered down" in why(await probe("01:00.0", sleepers=sleepers).sample())
    assert nvidia_smi.calls == []


async def test_the_address_is_learned_from_the_first_reading(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(FIRST))
    sleepers = Sleepers()
    asked = probe(FIRST, sleepers=sleepers)
    assert capacity(await asked.sample()).free == 23000
    sleepers.suspended.add("0000:01:00.0")
    assert "powered down" in why(await asked.sample())
    sleepers.suspended.clear()
    assert capacity(await asked.sample()).free == 23000


async def test_a_program_that_keeps_hanging_is_left_alone_for_a_while(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(FIRST))
    nvidia_smi.mode("hang")
    clock = FakeClock()
    asked = probe(deadline=0.5, clock=clock)
    for _ in range(3):
        assert "did not answer in time" in why(await asked.sample())
    assert "asked again in 30 s" in why(await asked.sample())
    assert len(nvidia_smi.calls) == 3
    clock.advance(31)
    nvidia_smi.mode("ok")
    assert capacity(await probe(clock=clock).sample()).free == 23000
    asked.backoff.reset()
    assert float(asked.backoff.remaining()) == 0


@pytest.mark.parametrize("mode", ["flood", "orphan-hang", "ignore-term"])
async def test_misbehaviour_is_unknown(nvidia_smi: NvidiaSmiLab, mode: str) -> None:
    nvidia_smi.mode(mode)
    assert why(await probe(deadline=0.5).sample())


async def test_an_orphan_that_holds_the_pipe_does_not_cost_the_answer(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.devices(device(FIRST, free=9))
    nvidia_smi.mode("orphan")
    assert capacity(await probe().sample()).free == 9
