from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from standins.loop_clock import LoopClock
from vacancy_agent.collect.holdings import IDLE_EVERY, HoldingsWatch
from vacancy_agent.core.facts import Instant, Ready, Seconds, Stale, Unknown
from vacancy_agent.core.shown import ModelShown, ModelsShown, PoolShown, SlotsShown
from vacancy_agent.upstreams.ask import AskError

if TYPE_CHECKING:
    from vacancy_agent.core.facts import Reading
    from vacancy_agent.core.shown import Shown

pytestmark = pytest.mark.looptime
LOADED = ModelsShown((ModelShown("m", "d", 1, None, 1, 1),))


class Server:
    """Shows this, or does not answer."""

    def __init__(self, shown: Shown | None) -> None:
        self.shown = shown
        self.looks: list[float] = []
        self.working = False
        self.written: list[Reading[Shown]] = []

    async def look(self) -> Ready[Shown]:
        now = asyncio.get_running_loop().time()
        self.looks.append(round(now, 2))
        if self.shown is None:
            raise AskError("refused")
        return Ready(self.shown, Instant(now))


@asynccontextmanager
async def watching(server: Server):
    watch = HoldingsWatch(server, server.written.append, lambda: server.working, LoopClock(), Seconds(2))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(watch.run())
        yield watch
        task.cancel()


@pytest.mark.parametrize(
    ("shown", "working", "looks"),
    [
        (ModelsShown(), False, [0, 10, 20]),
        (ModelsShown(), True, list(range(0, 21, 2))),
        (LOADED, False, list(range(0, 21, 2))),
        (PoolShown(None), False, [0, 10, 20]),
        (None, False, [0, 10, 20]),
        (SlotsShown(idle=True), False, [0]),
        (SlotsShown(idle=False), True, list(range(0, 21, 2))),
    ],
)
async def test_how_often_it_looks(shown: Shown | None, working: bool, looks: list[float]):
    assert IDLE_EVERY == 10
    server = Server(shown)
    server.working = working
    async with watching(server):
        await asyncio.sleep(21)
    assert server.looks == looks


async def test_it_looks_when_it_is_asked():
    server = Server(SlotsShown(idle=True))
    async with watching(server) as watch:
        await asyncio.sleep(5)
        watch.soon()
        watch.soon()
        await asyncio.sleep(0.1)
        assert server.looks == [0, 5]
        watch.soon()
        await asyncio.sleep(0)
        await watch.fresh(Seconds(1))
        assert server.looks == [0, 5, 5.1], "the one that somebody waits for"


async def test_a_job_that_ends_just_after_a_look_is_looked_after_with_the_next_interval():
    server = Server(ModelsShown())
    async with watching(server) as watch:
        await asyncio.sleep(0.1)
        server.shown = LOADED
        watch.soon()
        await asyncio.sleep(2)
    assert server.looks == [0, 2], "without it nobody would look for ten seconds"
    assert server.written[-1].value is LOADED


async def test_a_look_that_fails_leaves_the_last_one_stale_and_never_empty():
    server = Server(None)
    async with watching(server) as watch:
        await asyncio.sleep(0.1)
        server.shown = LOADED
        await watch.fresh(Seconds(1))
        server.shown = None
        await watch.fresh(Seconds(1))
        await watch.fresh(Seconds(1))
    first, second, *rest = server.written
    assert first == Unknown("refused")
    assert isinstance(second, Ready)
    assert rest == [Stale(LOADED, second.at, "refused")] * 2
