"""Outages: said once, waited for without spinning, and their end wakes everybody."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from standins.loop_clock import LoopClock
from vacancy_agent.cluster.fault import ApiError
from vacancy_agent.cluster.link import SPREAD_S, Delays, Link

pytestmark = pytest.mark.looptime

GONE = ApiError(None, "connection refused")
REFUSED = ApiError(403, "not you")


class Log:
    def __init__(self) -> None:
        self.events: list[str] = []

    def __call__(self, event: str, **facts: object) -> None:
        self.events.append(event)


@pytest.fixture
def log() -> Log:
    return Log()


async def test_an_outage_is_said_once_and_its_end_too(log: Log):
    link = Link(LoopClock(), log)
    for what in ("Lease", "status", "Lease"):
        link.failed(what, GONE)
    link.worked("Lease")
    link.worked("status")
    assert log.events == ["cluster unreachable", "cluster reached again"]


async def test_a_refusal_is_said_once_for_each_thing_and_kind(log: Log):
    link = Link(LoopClock(), log)
    for fault in (REFUSED, REFUSED, ApiError(404, "not there")):
        link.failed("status", fault)
    link.failed("Lease", REFUSED)
    link.worked("status")
    assert log.events == ["cluster refuses"] * 3 + ["cluster accepts again"]


async def test_whoever_rests_goes_on_soon_after_the_return(log: Log):
    link = Link(LoopClock(), log)
    link.failed("Lease", GONE)
    loop = asyncio.get_running_loop()
    loop.call_later(5.0, link.worked, "Lease")
    await link.rest(1000.0)
    assert 5.0 <= loop.time() <= 5.0 + SPREAD_S


async def test_a_rest_ends_by_itself(log: Log):
    await Link(LoopClock(), log).rest(3.0)
    assert asyncio.get_running_loop().time() == pytest.approx(3.0)


async def test_an_open_watch_is_ended_after_the_return(log: Log):
    link = Link(LoopClock(), log)
    link.failed("Lease", GONE)
    loop = asyncio.get_running_loop()
    loop.call_later(5.0, link.worked, "Lease")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1000.0) as limit:
            with link.watching(limit):
                await asyncio.sleep(2000.0)
    assert limit.expired()
    assert loop.time() <= 5.0 + SPREAD_S


@pytest.mark.looptime
async def test_after_a_sleep_open_watches_end_and_nobody_rests_any_longer(log: Log):
    link = Link(LoopClock(), log)
    loop = asyncio.get_running_loop()
    loop.call_later(5.0, link.connect_anew)
    async with asyncio.TaskGroup() as group:
        group.create_task(link.rest(1000.0))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1000.0) as limit:
                with link.watching(limit):
                    await asyncio.sleep(2000.0)
    assert limit.expired()
    assert loop.time() <= 5.0 + SPREAD_S


def test_delays_grow_to_a_bound_and_start_anew():
    delays = Delays(20.0)
    waits = [delays.next() for _ in range(20)]
    assert 0.5 <= waits[0] <= 1.0
    assert all(10.0 <= wait <= 20.0 for wait in waits[5:])
    delays.reset()
    assert delays.next() <= 1.0
