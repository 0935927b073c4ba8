"""Conditions are looked at soon after something changed, not at each change, and told when they change."""

from __future__ import annotations

import asyncio

import pytest

from standins.clock import FakeClock
from standins.hosts import host, observe, resource, upstream
from vacancy_agent.core.board import Board
from vacancy_agent.core.conditions import Conditions, config_finding
from vacancy_agent.wiring.findings import LOOK_S, Findings


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.board = Board(host((upstream("llm", ("gpu",)),), (resource("gpu"),)))
        self.conditions = Conditions()
        self.told: list[dict[str, object]] = []
        self.changes = 0
        self.looks = 0
        self.findings = Findings(
            self.conditions, self.board, self._claims, self.clock, lambda _, **facts: self.told.append(facts)
        )
        self.findings.changed = self._changed

    def _claims(self) -> dict[str, bool | None]:
        self.looks += 1
        return {}

    def _changed(self) -> None:
        self.changes += 1


def test_only_a_change_is_told_and_passed_on():
    world = World()
    observe(world.board, world.clock.now())
    world.findings.look()
    assert [facts["type"] for facts in world.told] == ["Lendable", "PresenceSignal"]
    world.findings.look()
    world.findings.find(None)
    assert (len(world.told), world.changes) == (2, 2)
    world.findings.find(config_finding(["spec: wrong"]))
    assert world.told[-1]["why"] == "spec: wrong"
    assert world.changes == 3


@pytest.mark.looptime
async def test_many_changes_are_one_look_soon():
    world = World()
    task = asyncio.get_running_loop().create_task(world.findings.run())
    await asyncio.sleep(10)
    assert world.looks == 0
    for _ in range(100):
        world.findings.soon()
    await asyncio.sleep(LOOK_S * 1.5)
    assert world.looks == 1
    world.findings.soon()
    await asyncio.sleep(LOOK_S * 1.5)
    assert world.looks == 2
    task.cancel()
