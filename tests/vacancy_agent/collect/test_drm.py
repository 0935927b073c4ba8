from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.clock import FakeClock
from standins.gpu_tree import CARD, GpuTree
from vacancy_agent.collect.drm import DrmProbe
from vacancy_agent.core.facts import ProcessIdentity
from vacancy_agent.core.owner_load import Attributed, Failed, NotPossible, Total
from vacancy_agent.core.settings import ResourceSettings, ResourceType
from vacancy_agent.platform.linux import fdinfo

if TYPE_CHECKING:
    from pathlib import Path

S = 1_000_000_000
SERVER, RUNNER, GAME = 100, 101, 200


@pytest.fixture
def tree(tmp_path: Path) -> GpuTree:
    """A server with a runner below it, and a game."""
    tree = GpuTree(tmp_path)
    tree.process(SERVER, started=50)
    tree.process(RUNNER, parent=SERVER, started=60)
    tree.process(GAME)
    return tree


class Looks:
    """A probe, and a look every two seconds."""

    def __init__(self, tree: GpuTree, *, fixed: bool = False) -> None:
        self.clock = FakeClock()
        self.served = {"llm": ProcessIdentity(SERVER, 50.0)}
        self.probe = DrmProbe(
            ResourceSettings("radeon", ResourceType.AMD),
            self.clock,
            served=self.served,
            may_use_total=fixed,
            devices=tree.devices,
            proc=tree.proc,
        )

    async def look(self, after: float = 2.0) -> object:
        self.clock.advance(after)
        return await self.probe.sample()

    async def attributed(self) -> Attributed:
        sample = await self.look()
        assert isinstance(sample, Attributed), sample
        return sample


async def test_the_served_tree_is_subtracted(tree: GpuTree) -> None:
    tree.card(busy=83)
    looks = Looks(tree)
    tree.opens(RUNNER, 1, gfx=0, compute=5 * S)
    tree.opens(GAME, 2, gfx=9 * S, dec=S)
    assert isinstance(await looks.look(), Failed)
    tree.opens(RUNNER, 1, gfx=0, compute=7 * S)
    tree.opens(GAME, 2, gfx=9 * S + S // 2, dec=S)
    sample = await looks.attributed()
    assert (sample.owner, sample.everything, sample.seen) == (25.0, 100.0, {"llm"})
    assert (sample.device, sample.at) == (CARD, looks.clock.now())
    assert sample.total == Total(83.0, looks.clock.now())  # type: ignore[arg-type]


async def test_who_serves_is_looked_up_anew_each_time(tree: GpuTree) -> None:
    tree.card()
    looks = Looks(tree)
    tree.opens(RUNNER, 1, gfx=0)
    await looks.look()
    tree.opens(RUNNER, 1, gfx=S)
    looks.served.clear()
    assert (await looks.attributed()).owner == 50.0


async def test_a_device_that_was_handed_on_is_the_owners_where_one_holder_is(tree: GpuTree) -> None:
    tree.card()
    looks = Looks(tree)
    for pid in (RUNNER, GAME):
        tree.opens(pid, 1, gfx=0)
    await looks.look()
    for pid in (RUNNER, GAME):
        tree.opens(pid, 1, gfx=S)
    sample = await looks.attributed()
    assert (sample.owner, len(sample.users), sample.seen) == (50.0, 1, set())


async def test_counters_from_before_a_pause_make_no_load(tree: GpuTree) -> None:
    tree.card()
    looks = Looks(tree)
    tree.opens(GAME, 2, gfx=0)
    await looks.look()
    assert isinstance(await looks.look(31.0), Failed)
    await looks.attributed()
    looks.probe.woke()
    assert isinstance(await looks.look(), Failed)


async def test_time_asleep_does_not_dilute_a_load(tree: GpuTree) -> None:
    tree.card()
    looks = Looks(tree)
    tree.opens(GAME, 2, gfx=0)
    await looks.look()
    looks.clock.sleep(100.0)
    tree.opens(GAME, 2, gfx=2 * S)
    assert (await looks.attributed()).owner == 100.0


async def test_a_gpu_that_sleeps_has_no_load(tree: GpuTree) -> None:
    tree.card(power="suspended", busy=None)
    assert await Looks(tree).attributed() == Attributed(CARD, (), FakeClock(1002.0).now())


async def test_no_card_and_counters_that_cannot_be_read_are_failures(tree: GpuTree) -> None:
    looks = Looks(tree)
    assert await looks.look() == Failed("there is no AMD GPU")
    tree.card()
    tree.opens(GAME, 2, text="drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-engine-gfx:\tx\n")
    failed = await looks.look()
    assert isinstance(failed, Failed)
    assert "drm-engine-gfx" in failed.why


@pytest.mark.parametrize(
    ("fixed", "busy", "expected"), [(False, 40, None), (True, None, None), (True, 40, 40.0)]
)
async def test_processes_that_may_not_be_looked_at_leave_the_total_at_best(
    tree: GpuTree, monkeypatch: pytest.MonkeyPatch, fixed: bool, busy: int | None, expected: float | None
) -> None:
    tree.card(busy=busy)

    def refuse(process: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(fdinfo, "_clients", refuse)
    sample = await Looks(tree, fixed=fixed).look()
    if expected is None:
        assert isinstance(sample, NotPossible)
        assert "as root" in sample.why
    else:
        assert isinstance(sample, Total)
        assert sample.load == expected
