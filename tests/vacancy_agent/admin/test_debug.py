"""A debug window is bounded, ends by itself, and can be ended."""

from __future__ import annotations

import asyncio

import pytest

from standins.clock import FakeClock
from vacancy_agent.admin.debug import DebugWindow


class World:
    def __init__(self) -> None:
        self.watched: list[bool] = []
        self.told: list[object] = []
        self.clock = FakeClock()
        self.window = DebugWindow(
            self.watched.append, self.clock, lambda _event, **facts: self.told.append(facts["until"])
        )


@pytest.mark.looptime
async def test_it_ends_by_itself():
    world = World()
    world.window.open(600)
    assert world.window.until == world.clock.wall() + 600
    await asyncio.sleep(599)
    assert world.watched == [True]
    await asyncio.sleep(2)
    assert (world.watched, world.window.until, world.told[-1]) == ([True, False], None, "ended")


@pytest.mark.looptime
async def test_a_second_one_replaces_the_first():
    world = World()
    world.window.open(600)
    await asyncio.sleep(500)
    world.window.open(600)
    await asyncio.sleep(500)
    assert world.watched == [True, True]
    world.window.open(0)
    assert (world.watched, world.window.until) == ([True, True, False], None)
    await asyncio.sleep(1000)
    assert world.watched == [True, True, False]


async def test_an_agent_that_ends_with_one_open():
    world = World()
    world.window.close()
    assert world.watched == []
    world.window.open(600)
    world.window.close()
    world.window.close()
    assert world.watched == [True, False]
