from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from standins.gpu_tree import APU, CARD, GpuTree
from vacancy_agent.core.parse.fdinfo import FdinfoError, parse_fdinfo
from vacancy_agent.platform.linux.fdinfo import Holder, UnseenProcessesError, holders, loads

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path) -> GpuTree:
    return GpuTree(tmp_path)


def by_client(found: tuple[Holder, ...]) -> dict[int, set[int]]:
    return {one.client.client: set(one.pids) for one in found}


def test_a_client_is_counted_once_however_many_hold_it(tree: GpuTree) -> None:
    """A descriptor that was duplicated, or handed on from one process to another."""
    tree.opens(10, 1, fd=5, gfx=100)
    tree.opens(10, 1, fd=6, gfx=100)
    tree.opens(11, 1, fd=3, gfx=100)
    tree.opens(11, 2, fd=4, gfx=7)
    tree.process(12)
    assert by_client(holders(CARD, tree.proc)) == {1: {10, 11}, 2: {11}}


def test_the_same_number_on_another_gpu_is_another_client(tree: GpuTree) -> None:
    tree.opens(10, 1, fd=5, gfx=100)
    tree.opens(11, 1, fd=5, pci=APU, gfx=900)
    (one,) = holders(APU, tree.proc)
    assert one.client.engines["gfx"].used == 900
    assert one.pids == {11}


def test_what_is_no_gpu_is_not_even_read(tree: GpuTree) -> None:
    tree.opens(10, 1, fd=5, gfx=100)
    folder = tree.proc / "10"
    (folder / "fd" / "9").symlink_to("socket:[4711]")
    (folder / "fdinfo" / "9").write_text("drm-driver:\tnonsense\ndrm-engine-gfx:\tmuch\n")
    assert by_client(holders(CARD, tree.proc)) == {1: {10}}


def test_counters_that_cannot_be_read_are_an_error(tree: GpuTree) -> None:
    tree.opens(10, 1, text="drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-engine-gfx:\tmuch\n")
    with pytest.raises(FdinfoError):
        holders(CARD, tree.proc)


def test_a_process_that_ends_meanwhile_has_nothing_open(tree: GpuTree) -> None:
    tree.opens(10, 1, gfx=5)
    (tree.proc / "10" / "fdinfo" / "5").unlink()
    (tree.proc / "11").mkdir()
    assert holders(CARD, tree.proc) == ()


def test_a_process_that_may_not_be_looked_at_makes_the_list_no_list(
    tree: GpuTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.opens(10, 1, gfx=5)
    tree.process(11)
    real = os.listdir

    def listdir(path: object) -> list[str]:
        if "11" in str(path):
            raise PermissionError(13, "Permission denied")
        return real(path)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(os, "listdir", listdir)
    with pytest.raises(
        UnseenProcessesError, match="at least 1 processes cannot be looked at: run the agent as root"
    ):
        holders(CARD, tree.proc)


def test_a_table_that_leaves_out_other_users_processes_is_no_list(tree: GpuTree) -> None:
    tree.opens(10, 1, gfx=5)
    shutil.rmtree(tree.proc / "1")
    with pytest.raises(UnseenProcessesError):
        holders(CARD, tree.proc)


def test_the_real_process_table_can_be_read() -> None:
    try:
        found = holders(CARD)
    except UnseenProcessesError:
        return
    assert found == ()


def test_loads_are_by_engine_and_leave_out_what_was_not_used(tree: GpuTree) -> None:
    tree.opens(10, 1, gfx=1_000_000_000, dec=50)
    before = {one.client.key: one.client for one in holders(CARD, tree.proc)}
    tree.opens(10, 1, gfx=2_000_000_000, dec=50)
    tree.opens(11, 2, gfx=500_000_000)
    after = {one.client.client: one.client for one in holders(CARD, tree.proc)}
    assert loads(before, after[1], 2.0) == {"gfx": pytest.approx(50.0)}
    assert loads(before, after[2], 2.0) == {"gfx": pytest.approx(25.0)}, "a new one began at zero"


def test_the_stand_in_is_as_the_kernel_writes_it(tree: GpuTree) -> None:
    tree.opens(10, 1, gfx=5)
    assert parse_fdinfo((tree.proc / "10" / "fdinfo" / "5").read_bytes()) is not None
