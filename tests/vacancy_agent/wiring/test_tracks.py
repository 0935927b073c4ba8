from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from standins import agreement
from standins.comfyui_standin import graph
from standins.http_text import reply, request
from standins.lending_rig import BORROW, one_upstream
from vacancy_agent.core.facts import Instant, ProcessIdentity, Seconds
from vacancy_agent.core.job import Phase, ReleasedBy
from vacancy_agent.core.parse.comfyui import PromptState, Release
from vacancy_agent.core.reclaim import Reclaims
from vacancy_agent.core.settings import Dialect, OnOwnerReturn
from vacancy_agent.proxy.cutter import Cutter
from vacancy_agent.proxy.prompts import MOST_IDS
from vacancy_agent.reclaim.runner import ReclaimRunner
from vacancy_agent.upstreams.ask import AskError
from vacancy_agent.upstreams.comfyui import Queue
from vacancy_agent.upstreams.comfyui_free import Freed, NotShown
from vacancy_agent.wiring.tracks import GIVE_UP, Tracks
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from standins.lending_rig import LendingRig
    from vacancy_agent.core.job import JobId

pytestmark = pytest.mark.looptime
IDS = [f"e186e2ca-b3f5-4bda-be65-4619f2694c3{n}" for n in range(4)]


class Clock:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def now(self) -> Instant:
        return Instant(2000.0 + self._loop.time())

    def wall(self) -> float:
        return 1e9


class Comfy:
    """A server with this queue, which notes what it is told. What is stopped goes a second later."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.pending: set[str] = set()
        self.told: list[object] = []
        self.silent = False
        self.keeps = True

    def forget(self) -> None:
        pass

    def _speak(self) -> None:
        if self.silent:
            raise AskError("no answer")

    async def release(self) -> Release:
        self._speak()
        return Release(0, 28, 1)

    async def keeps_ids(self) -> bool:
        return self.keeps

    async def has_jobs(self) -> bool:
        return True

    async def remaining(self) -> int:
        self._speak()
        return len(self.running | self.pending)

    async def state(self, prompt_id: str) -> PromptState:
        there = prompt_id in self.running | self.pending
        return PromptState.THERE if there else PromptState.ENDED

    async def queue(self) -> Queue:
        self._speak()
        return Queue(frozenset(self.running), frozenset(self.pending))

    async def delete(self, prompt_ids: list[str]) -> None:
        self.told.append(("delete", *prompt_ids))
        self.pending -= set(prompt_ids)

    async def stop(self, prompt_id: str, *, alone: bool) -> bool:
        self.told.append(("stop", prompt_id, alone))
        asyncio.get_running_loop().call_later(1.0, self.running.discard, prompt_id)
        return True

    async def foreign(self, ours: Callable[[str], bool]) -> str | None:
        return next((one for one in self.running | self.pending if not ours(one)), None)

    async def free(self) -> None:
        self.told.append("free")

    async def device_memory(self) -> tuple[SimpleNamespace, ...]:
        return (SimpleNamespace(torch_vram_total=0),)


class World:
    """A lending host whose prompts are tracked."""

    def __init__(self, rig: LendingRig) -> None:
        self.rig, self.comfy = rig, Comfy()
        self.replaced = False
        local = SimpleNamespace(replaced=self._replaced)
        self.tracks = Tracks(
            rig.host,
            SimpleNamespace(comfys={"up": self.comfy}, locals={"up": local}),  # type: ignore[arg-type]
        )
        rig.clock = rig.host.clock = Clock()  # type: ignore[assignment]
        rig.host.track = self.tracks.nudge
        rig.host.spawn = asyncio.get_running_loop().create_task
        self.cutter = Cutter(rig.host, self.tracks.cancel)

    async def _replaced(self, _process: ProcessIdentity, _since: Instant) -> bool:
        return self.replaced

    def submit(self, prompt_id: str, *, lands: bool = True) -> JobId:
        self.rig.observe()
        body = {"prompt": graph(), "prompt_id": prompt_id}
        self.rig.port.connect(request("/prompt", body, token=BORROW))
        if lands:
            self.rig.port.link().send(reply({"prompt_id": prompt_id}))
        return max(self.rig.host.ledger.active("up"))

    @property
    def phases(self) -> list[Phase]:
        agreement.check(self.rig.host, self.rig.journal)
        return [job.phase for job in self.rig.host.ledger.jobs()]


@pytest.fixture
async def world(lending: Callable[..., LendingRig]) -> AsyncIterator[World]:
    made = World(lending(one_upstream(dialect=Dialect.COMFYUI, slots=4)))
    running = asyncio.get_running_loop().create_task(made.tracks.run())
    yield made
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_a_prompt_that_is_gone_gives_its_place_back(world: World) -> None:
    world.comfy.running, world.comfy.pending = {IDS[0]}, {IDS[1]}
    world.submit(IDS[0])
    await asyncio.sleep(5)
    world.submit(IDS[1])
    await asyncio.sleep(5)
    assert world.phases == [Phase.TRACKING, Phase.TRACKING]
    world.comfy.running, world.comfy.pending = {IDS[1]}, set()
    await asyncio.sleep(1.1)
    assert world.phases == [Phase.TRACKING]
    world.comfy.running = set()
    await asyncio.sleep(1.1)
    agreement.check_empty(world.rig.host, world.rig.journal, world.rig.reclaims)
    assert world.rig.host.used["ci"].requests == 2
    assert world.rig.host.used["ci"].seconds >= 15.0, "it used the card after its reply, too"


async def test_where_the_server_is_silent_it_becomes_a_hold_that_says_so(world: World) -> None:
    world.submit(IDS[0])
    world.comfy.silent = True
    await asyncio.sleep(GIVE_UP - 2)
    assert world.phases == [Phase.TRACKING]
    await asyncio.sleep(4)
    assert world.phases == [Phase.HELD]
    (job,) = world.rig.host.ledger.holds()
    assert job.why == "whether its prompt has ended is not known: no answer"
    (slot,) = world.rig.host.held_slots.values()
    assert slot.prompt is not None
    assert slot.prompt.id == IDS[0]
    assert world.rig.nudges == 1


async def test_a_silence_in_between_costs_nothing(world: World) -> None:
    world.comfy.running = {IDS[0]}
    world.submit(IDS[0])
    for _ in range(3):
        world.comfy.silent = True
        await asyncio.sleep(GIVE_UP - 5)
        world.comfy.silent = False
        await asyncio.sleep(5)
    assert world.phases == [Phase.TRACKING]


async def test_a_replaced_process_took_its_prompts_along(world: World) -> None:
    world.rig.host.processes["up"] = ProcessIdentity(5, 1.0)
    job = world.rig.host.ledger.job(world.submit(IDS[0]))
    world.comfy.silent = world.replaced = True
    await asyncio.sleep(2)
    assert world.phases == []
    assert job is not None
    assert job.released_by is ReleasedBy.REPLACED


async def test_what_is_cancelled_is_released_as_soon_as_it_is_gone(world: World) -> None:
    jobs = [world.submit(one) for one in IDS[:3]]
    world.comfy.running, world.comfy.pending = {IDS[0]}, {IDS[1], IDS[2], "the owner's"}
    for job in jobs[:2]:
        world.cutter.cut(job, Reason.OWNER_ACTIVE)
    await asyncio.sleep(2)
    assert world.comfy.told == [("delete", IDS[1]), ("stop", IDS[0], False)]
    assert [job.id for job in world.rig.host.ledger.jobs()] == [jobs[2]]
    assert world.comfy.pending == {IDS[2], "the owner's"}


async def test_a_submission_whose_reply_is_in_flight_is_cancelled_once_it_lands(world: World) -> None:
    job = world.submit(IDS[0], lands=False)
    world.cutter.cut(job, Reason.OWNER_ACTIVE)
    assert world.phases == [Phase.HELD]
    await asyncio.sleep(20)
    assert world.comfy.told == []
    world.comfy.pending = {IDS[0]}  # the server had not got round to it
    await asyncio.sleep(1.1)
    assert world.comfy.told == [("delete", IDS[0])]
    world.rig.holds.release(job, ReleasedBy.PROOF, "its prompt is not in the queue")
    await asyncio.sleep(2)
    assert not world.tracks._doomed


async def test_a_prompt_that_does_not_stop_is_told_of(world: World) -> None:
    world.cutter.cut(world.submit(IDS[0]), Reason.OWNER_ACTIVE)
    world.comfy.silent = True
    await asyncio.sleep(15)
    assert [facts["why"] for facts in world.rig.told_of("prompts still run")] == ["no answer"]


async def test_where_its_upstream_is_gone_nothing_is_cancelled(world: World) -> None:
    job = world.submit(IDS[0])
    world.tracks._holds.comfys.clear()
    world.cutter.cut(job, Reason.OWNER_ACTIVE)
    await asyncio.sleep(1)
    assert not world.tracks._doomed
    await asyncio.sleep(GIVE_UP + 5)
    assert world.phases == [Phase.HELD]


async def never(_why: str) -> bool:
    return False


@pytest.mark.parametrize("policy", [OnOwnerReturn.CANCEL, OnOwnerReturn.DRAIN])
async def test_before_an_unload_prompts_that_nobody_waits_for_are_cancelled(
    world: World, policy: OnOwnerReturn
) -> None:
    world.submit(IDS[0])
    world.comfy.silent = True
    await asyncio.sleep(GIVE_UP + 2)
    world.comfy.silent, world.comfy.running = False, {IDS[0]}
    world.rig.reconfigure(one_upstream(dialect=Dialect.COMFYUI, slots=4, on_owner_return=policy))
    assert isinstance(await world.tracks.free("up", never), Freed)
    await asyncio.sleep(0.5)
    assert sorted(map(str, world.comfy.told)) == sorted(["free", str(("stop", IDS[0], True))])


@pytest.mark.parametrize("policy", [OnOwnerReturn.CANCEL, OnOwnerReturn.DRAIN])
async def test_whoever_leaves_before_the_reply_does_not_keep_the_card_from_its_owner(
    world: World, policy: OnOwnerReturn
) -> None:
    changes = {"yield_on_veto": False, "on_owner_return": policy, "drain_timeout": Seconds(5)}
    world.rig.reconfigure(one_upstream(dialect=Dialect.COMFYUI, slots=4, **changes))
    reclaim = ReclaimRunner(
        Reclaims(world.rig.settings), world.rig.host.ledger, world.cutter, world.rig.clock, world.rig.tell
    )
    reclaim.wake, reclaim.left = asyncio.get_running_loop().call_later, world.tracks.held
    body = {"prompt": graph(), "prompt_id": IDS[0]}
    world.rig.observe()
    world.rig.port.connect(request("/prompt", body, token=BORROW)).hang_up()
    assert world.phases == [Phase.HELD]
    world.comfy.running = {IDS[0]}
    reclaim.owner_returned(world.rig.clock.now())
    await asyncio.sleep(6)
    await asyncio.sleep(2)
    assert world.comfy.told == [("stop", IDS[0], True)]


async def test_a_prompt_whose_id_was_forgotten_is_still_a_borrowers(world: World) -> None:
    job = world.submit(IDS[0])
    world.comfy.running = {IDS[0]}
    for number in range(MOST_IDS):
        world.rig.host.prompt_ids.add(world.rig.settings.upstreams["up"].target, str(number))
    world.cutter.cut(job, Reason.OWNER_ACTIVE)
    await asyncio.sleep(2)
    assert world.comfy.told == [("stop", IDS[0], True)], "alone: nobody else's prompt is there"


async def test_except_where_accepted_work_may_finish(world: World) -> None:
    world.submit(IDS[0])
    world.comfy.silent = True
    await asyncio.sleep(GIVE_UP + 2)
    world.comfy.silent, world.comfy.running = False, {IDS[0]}
    finish = one_upstream(dialect=Dialect.COMFYUI, slots=4, on_owner_return=OnOwnerReturn.FINISH)
    world.rig.reconfigure(finish)
    assert isinstance(await world.tracks.free("up", never), Freed)
    await asyncio.sleep(0.5)
    assert world.comfy.told == ["free"]


async def test_beside_an_id_that_only_the_server_knows_nothing_is_called_somebody_elses(world: World) -> None:
    world.comfy.keeps, world.comfy.running = False, {"whose?"}
    assert not isinstance(await world.tracks.free("up", never), Freed)
    world.submit(IDS[0], lands=False)
    assert isinstance(await world.tracks.free("up", never), Freed)


async def test_an_upstream_that_is_gone_is_not_unloaded(world: World) -> None:
    found: Any = await world.tracks.free("gone", never)
    assert isinstance(found, NotShown)
