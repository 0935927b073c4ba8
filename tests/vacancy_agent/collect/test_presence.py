from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from standins.clock import FakeClock
from standins.sink import RecordingSink
from vacancy_agent.collect.freshness import Freshness
from vacancy_agent.collect.presence import PresenceLoop
from vacancy_agent.core.facts import Evidence, Instant, Presence, Ready, Seconds, Unknown
from vacancy_agent.platform.presence import PresenceUnreadableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

pytestmark = pytest.mark.looptime
THERE = Presence(Evidence.PRESENT, "a desktop is in use")
AWAY = Presence(Evidence.ABSENT, "nobody is logged in")


class Source:
    """Answers what the test sets; can be slow and can fail."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.answer: Presence | Exception = AWAY
        self.takes = 0.0
        self.changed: Callable[[], None] = lambda: None
        self.sleep: Callable[[bool], None] = lambda _sleeping: None
        self.closed = False

    async def read(self) -> Presence:
        await asyncio.sleep(self.takes)
        self.clock.advance(self.takes)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def watch(self, changed: Callable[[], None], sleep: Callable[[bool], None]) -> None:
        self.changed, self.sleep = changed, sleep
        await asyncio.Event().wait()

    async def close(self) -> None:
        self.closed = True


class Rig:
    def __init__(self) -> None:
        self.clock = FakeClock(0.0)
        self.source = Source(self.clock)
        self.sink = RecordingSink()
        self.freshness = Freshness(Seconds(15.0))
        self.sleeps: list[bool] = []
        self.befores = 0
        self.loop = PresenceLoop(
            self.source,
            self.sink,
            self.clock,
            self.freshness,
            interval=Seconds(3.0),
            before=self._before,
            sleep=self.sleeps.append,
        )

    def _before(self) -> None:
        self.befores += 1


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    made = Rig()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(made.loop.run())
        yield made
        task.cancel()


async def test_polls_and_writes_when_the_sample_began() -> None:
    async with rig() as r:
        r.source.takes = 0.5
        await asyncio.sleep(4)
    assert r.sink.presence == [Ready(AWAY, Instant(0.0)), Ready(AWAY, Instant(0.5))]
    assert r.befores == 2
    assert r.source.closed


async def test_a_signal_is_followed_by_a_sample_at_once() -> None:
    async with rig() as r:
        await asyncio.sleep(1)
        r.source.answer = THERE
        r.source.changed()
        await asyncio.sleep(0.001)
        assert r.sink.presence[-1] == Ready(THERE, Instant(0.0))


async def test_a_storm_of_signals_is_twenty_samples_a_second() -> None:
    async with rig() as r:
        await asyncio.sleep(1)
        before = len(r.sink.presence)
        for _ in range(1000):
            r.source.changed()
            await asyncio.sleep(0.001)
    assert 18 <= len(r.sink.presence) - before <= 22


async def test_a_failed_sample_is_unknown_at_once() -> None:
    async with rig() as r:
        await asyncio.sleep(1)
        r.source.answer = PresenceUnreadableError("logind does not answer")
        await asyncio.sleep(3)
        r.source.answer = THERE
        await asyncio.sleep(3)
    assert r.sink.presence[1:] == [Unknown("logind does not answer"), Ready(THERE, Instant(0.0))]


async def test_a_sample_that_took_longer_than_the_bound_is_discarded() -> None:
    async with rig() as r:
        r.source.takes = 16
        await asyncio.sleep(17)
        (reading,) = r.sink.presence
    assert isinstance(reading, Unknown)
    assert "took 16 s" in reading.why


async def test_a_sample_that_began_before_a_sleep_is_discarded() -> None:
    async with rig() as r:
        r.source.takes = 2
        await asyncio.sleep(1)
        r.freshness.resumed(Instant(1.0))
        await asyncio.sleep(2)
        (reading,) = r.sink.presence
    assert reading == Unknown("the machine slept during the sample")


async def test_sleep_is_passed_on() -> None:
    async with rig() as r:
        await asyncio.sleep(1)
        r.source.sleep(True)
        r.source.sleep(False)
    assert r.sleeps == [True, False]


async def test_a_bug_is_not_a_reading() -> None:
    r = Rig()
    r.source.answer = KeyError("a bug")
    with pytest.raises(ExceptionGroup):
        await r.loop.run()
    assert r.sink.presence == []
    assert r.source.closed
