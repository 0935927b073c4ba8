from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.clock import FakeClock
from standins.gpu_tree import APU, CARD, GpuTree
from vacancy_agent.collect.amd import AmdProbe
from vacancy_agent.core.facts import Capacity, Instant, MemoryCapacity, MiB, Percent, Reading, Ready, Unknown
from vacancy_agent.core.settings import ResourceSettings, ResourceType

if TYPE_CHECKING:
    from pathlib import Path

    from vacancy_agent.platform.linux.amdgpu import AmdGpu

HOST: Reading[Capacity] = Ready(MemoryCapacity(MiB(20_000), MiB(31_000)), Instant(1.0))


@pytest.fixture
def tree(tmp_path: Path) -> GpuTree:
    return GpuTree(tmp_path)


def probe(
    tree: GpuTree, device: str | None = None, *, unified: bool = False, host: object = HOST
) -> AmdProbe:
    settings = ResourceSettings("radeon", ResourceType.AMD, device=device, unified=unified)
    return AmdProbe(settings, FakeClock(5.0), host_memory=lambda: host, devices=tree.devices)  # type: ignore[arg-type,return-value]


async def test_a_cards_own_memory(tree: GpuTree) -> None:
    tree.card(CARD, vram=(16_368, 900), busy=12)
    reading = await probe(tree).sample()
    assert reading == Ready(MemoryCapacity(MiB(15_468), MiB(16_368), Percent(12.0)), Instant(5.0))


async def test_of_two_cards_the_named_one(tree: GpuTree) -> None:
    tree.card(CARD, vram=(16_368, 900))
    tree.card("0000:0a:00.0", vram=(8_176, 8_000))
    reading = await probe(tree, "0a:00.0").sample()
    assert isinstance(reading, Ready)
    assert isinstance(reading.value, MemoryCapacity)
    assert (reading.value.free, reading.value.total) == (176, 8_176)
    unnamed = await probe(tree).sample()
    assert unnamed == Unknown("there are 2 AMD GPUs: the resource must name its device")


@pytest.mark.parametrize(
    ("gtt_used", "host_free", "free"),
    [(900, 20_000, 14_100), (900, 6_000, 6_000), (14_990, 20_000, 10)],
)
async def test_an_apu_works_in_the_hosts_memory(
    tree: GpuTree, gtt_used: int, host_free: int, free: int
) -> None:
    """512 MiB carved out, 15 GB of the host's for its use; the owner's programs leave what they do."""
    tree.card(APU, vram=(512, 480), gtt=(15_000, gtt_used))
    host: Reading[Capacity] = Ready(MemoryCapacity(MiB(host_free), MiB(31_000)), Instant(1.0))
    reading = await probe(tree, host=host).sample()
    assert isinstance(reading, Ready)
    assert isinstance(reading.value, MemoryCapacity)
    assert (reading.value.free, reading.value.total) == (free, 15_000)


async def test_a_large_carve_out_is_the_cards_own_unless_declared_unified(tree: GpuTree) -> None:
    tree.card(APU, vram=(65_536, 100), gtt=(31_000, 60))
    alone, unified = await probe(tree).sample(), await probe(tree, unified=True).sample()
    assert isinstance(alone, Ready)
    assert isinstance(unified, Ready)
    assert isinstance(alone.value, MemoryCapacity)
    assert isinstance(unified.value, MemoryCapacity)
    assert (alone.value.free, unified.value.free) == (65_436, 20_000)


async def test_the_hosts_memory_unread_makes_an_apu_unread(tree: GpuTree) -> None:
    tree.card(APU, vram=(512, 0))
    unknown = Unknown("the host's memory cannot be read")
    assert await probe(tree, host=unknown).sample() == unknown


async def test_a_gpu_that_sleeps_is_not_woken(tree: GpuTree, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tree.card(CARD, power="suspended")
    for file in device.glob("mem_info_*"):
        file.unlink() if file.name != "mem_info_vram_total" else None

    def refuse(self: AmdGpu) -> Percent:
        raise AssertionError("reading the load would wake it")

    monkeypatch.setattr("vacancy_agent.platform.linux.amdgpu.AmdGpu.load", refuse)
    assert await probe(tree).sample() == Unknown("the GPU is powered down, and asking would wake it")


async def test_no_card_is_unknown(tree: GpuTree) -> None:
    assert await probe(tree).sample() == Unknown("there is no AMD GPU")
