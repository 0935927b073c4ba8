from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.gpu_tree import APU, CARD, GpuTree
from vacancy_agent.platform.linux.amdgpu import AmdGpu, AmdGpuError, Pool

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path) -> GpuTree:
    return GpuTree(tmp_path)


def test_the_only_one_needs_no_name(tree: GpuTree) -> None:
    tree.card(CARD)
    tree.card("0000:01:00.0", vendor="0x10de")
    assert AmdGpu.find(None, tree.devices).pci == CARD


@pytest.mark.parametrize("name", [CARD, "03:00.0", "00000000:03:00.0", "3:0.0"])
def test_a_name_is_a_pci_address_in_any_spelling(tree: GpuTree, name: str) -> None:
    tree.card(CARD)
    tree.card(APU)
    assert AmdGpu.find(name, tree.devices).pci == CARD


@pytest.mark.parametrize(
    ("cards", "name", "said"),
    [
        ([], None, "there is no AMD GPU"),
        ([CARD, APU], None, "there are 2 AMD GPUs: the resource must name its device"),
        ([CARD], APU, "there is no AMD GPU at 0000:65:00.0"),
        ([CARD], "GPU-12", "named by its PCI address"),
    ],
)
def test_one_that_is_not_there_is_said(tree: GpuTree, cards: list[str], name: str | None, said: str) -> None:
    for card in cards:
        tree.card(card)
    with pytest.raises(AmdGpuError, match=said):
        AmdGpu.find(name, tree.devices)


def test_no_pci_bus_at_all_is_said(tmp_path: Path) -> None:
    with pytest.raises(AmdGpuError, match="cannot be listed"):
        AmdGpu.find(None, tmp_path / "nothing")


def test_another_driver_than_amdgpu_tells_nothing(tree: GpuTree) -> None:
    (tree.card(CARD) / "mem_info_vram_total").unlink()
    with pytest.raises(AmdGpuError, match="driver is not amdgpu"):
        AmdGpu.find(CARD, tree.devices)


def test_memory_and_load(tree: GpuTree) -> None:
    tree.card(CARD, vram=(16_368, 900), gtt=(15_900, 60), busy=37)
    gpu = AmdGpu.find(CARD, tree.devices)
    memory = gpu.memory()
    assert memory.vram == Pool(16_368, 15_468)  # type: ignore[arg-type]
    assert memory.gtt == Pool(15_900, 15_840)  # type: ignore[arg-type]
    assert gpu.load() == 37.0
    assert not gpu.asleep


@pytest.mark.parametrize("busy", [None, "", "N/A", "-1", "101"])
def test_a_load_that_is_no_percentage_is_none(tree: GpuTree, busy: str | None) -> None:
    tree.card(CARD, busy=busy)
    assert AmdGpu.find(CARD, tree.devices).load() is None


@pytest.mark.parametrize("text", ["", "plenty", "-5", str(10**12)])
def test_memory_that_is_no_number_or_cannot_be_is_an_error_and_no_zero(tree: GpuTree, text: str) -> None:
    (tree.card(CARD) / "mem_info_vram_used").write_text(text)
    with pytest.raises(AmdGpuError):
        AmdGpu.find(CARD, tree.devices).memory()


def test_a_missing_file_is_an_error(tree: GpuTree) -> None:
    (tree.card(CARD) / "mem_info_gtt_total").unlink()
    with pytest.raises(AmdGpuError, match=r"mem_info_gtt_total of .* cannot be read"):
        AmdGpu.find(CARD, tree.devices).memory()


def test_one_that_is_powered_down(tree: GpuTree) -> None:
    tree.card(CARD, power="suspended")
    assert AmdGpu.find(CARD, tree.devices).asleep
