from __future__ import annotations

import asyncio

import pytest

from standins.loop_clock import LoopClock
from vacancy_agent.core.facts import Instant
from vacancy_agent.upstreams.waiting import wait_until


@pytest.mark.looptime
async def test_waits_for_a_time_to_come_and_not_for_one_that_came():
    loop = asyncio.get_running_loop()
    start = loop.time()
    await wait_until(LoopClock(), Instant(start + 5.0))
    assert loop.time() - start == pytest.approx(5.0)
    await wait_until(LoopClock(), Instant(start))
    assert loop.time() - start == pytest.approx(5.0)
