from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from vacancy_agent.collect.loop import CadenceLoop
from vacancy_agent.core.facts import Seconds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

pytestmark = pytest.mark.looptime


class Sampler:
    """Notes when samples begin; each takes as long as it is told."""

    def __init__(self, took: float = 0.0) -> None:
        self.took = took
        self.began: list[float] = []
        self.running = 0

    async def __call__(self) -> None:
        assert self.running == 0, "samples overlap"
        self.running += 1
        self.began.append(round(asyncio.get_running_loop().time(), 3))
        await asyncio.sleep(self.took)
        self.running -= 1


@asynccontextmanager
async def running(
    sample: Callable[[], Awaitable[None]], interval: float = 3.0, min_gap: float = 0.0
) -> AsyncIterator[CadenceLoop]:
    cadence = CadenceLoop(sample, interval=Seconds(interval), min_gap=min_gap)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(cadence.run())
        yield cadence
        task.cancel()


async def test_samples_at_once_and_then_at_the_cadence() -> None:
    sampler = Sampler(took=0.5)
    async with running(sampler):
        await asyncio.sleep(10)
    assert sampler.began == [0, 3, 6, 9]


async def test_a_slow_sample_skips_polls_and_keeps_the_phase() -> None:
    sampler = Sampler(took=7)
    async with running(sampler):
        await asyncio.sleep(20)
    assert sampler.began == [0, 9, 18]


async def test_a_request_is_answered_at_once_and_does_not_move_the_poll() -> None:
    sampler = Sampler()
    async with running(sampler) as cadence:
        await asyncio.sleep(1)
        cadence.request()
        await asyncio.sleep(6)
    assert sampler.began == [0, 1, 3, 6]


async def test_requests_are_coalesced_and_keep_their_gap() -> None:
    sampler = Sampler()
    async with running(sampler, interval=100, min_gap=0.05) as cadence:
        await asyncio.sleep(1)
        for _ in range(200):
            cadence.request()
            await asyncio.sleep(0.005)
        await asyncio.sleep(1)
    assert sampler.began[1] == 1
    gaps = [b - a for a, b in zip(sampler.began, sampler.began[1:], strict=False)]
    assert min(gaps) >= 0.049
    assert len(sampler.began) <= 23


async def test_the_last_request_of_a_storm_is_answered() -> None:
    sampler = Sampler()
    async with running(sampler, interval=100, min_gap=0.05) as cadence:
        await asyncio.sleep(1)
        cadence.request()
        await asyncio.sleep(0.01)
        cadence.request()
        await asyncio.sleep(1)
    assert sampler.began == [0, 1, 1.05]


async def test_a_request_during_a_sample_gets_one_that_begins_after_it() -> None:
    sampler = Sampler(took=1)
    async with running(sampler, interval=100) as cadence:
        await asyncio.sleep(0.5)
        cadence.request()
        await asyncio.sleep(5)
    assert sampler.began == [0, 1]


async def test_sample_once_waits_for_a_sample_that_began_after_the_call() -> None:
    sampler = Sampler(took=1)
    async with running(sampler, interval=100) as cadence:
        await asyncio.sleep(0.5)
        assert await cadence.sample_once(Seconds(5)) is True
        assert asyncio.get_running_loop().time() == pytest.approx(2)


async def test_sample_once_gives_up_at_its_bound_and_the_sample_goes_on() -> None:
    sampler = Sampler(took=4)
    async with running(sampler, interval=100) as cadence:
        await asyncio.sleep(5)
        assert await cadence.sample_once(Seconds(1)) is False
        assert sampler.running == 1
        assert cadence._waiters == []
        await asyncio.sleep(5)
    assert sampler.began == [0, 5]


async def test_many_waiters_share_one_sample() -> None:
    sampler = Sampler(took=1)
    async with running(sampler, interval=100) as cadence:
        await asyncio.sleep(2)
        assert await asyncio.gather(*(cadence.sample_once(Seconds(5)) for _ in range(8))) == [True] * 8
    assert sampler.began == [0, 2]


async def test_a_bug_in_a_sample_ends_the_loop_and_frees_who_waits() -> None:
    async def broken() -> None:
        raise KeyError

    cadence = CadenceLoop(broken, interval=Seconds(3))
    waiting = asyncio.gather(cadence.sample_once(Seconds(5)), asyncio.sleep(0))
    with pytest.raises(KeyError):
        await cadence.run()
    assert (await waiting)[0] is True
