from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from standins.operator_api import DictApi, HandClock
from vacancy_operator.api import ApiError
from vacancy_operator.core.kinds import LEASE, Ref
from vacancy_operator.election import Election
from vacancy_operator.settings import Settings

if TYPE_CHECKING:
    from vacancy_operator.api import Api

REF = Ref(LEASE, "vacancy-operator")


@dataclass
class Replica:
    api: DictApi
    clock: HandClock
    name: str
    turns: list[bool] = field(default_factory=list)
    answers: int = 0

    def __post_init__(self) -> None:
        settings = Settings(namespace="lending", identity=self.name, lease_renew=0.01)
        self.election = Election(
            cast("Api", self.api), self.clock, settings, self.turns.append, self._answered
        )

    def _answered(self) -> None:
        self.answers += 1

    async def turn(self) -> bool:
        await self.election.turn()
        return self.election.active()


def pair() -> tuple[Replica, Replica, DictApi, HandClock]:
    api, clock = DictApi(), HandClock()
    return Replica(api, clock, "one"), Replica(api, clock, "two"), api, clock


async def test_one_is_active_and_the_other_waits() -> None:
    one, two, api, clock = pair()
    for _ in range(10):
        assert (await one.turn(), await two.turn()) == (True, False)
        clock.seconds += 5.0
    assert (one.turns, two.turns) == ([True], [])
    assert api.objects[REF]["spec"]["leaseTransitions"] == 1


async def test_a_replica_that_is_gone_is_followed_after_its_lease() -> None:
    one, two, _, clock = pair()
    await one.turn()
    await two.turn()
    clock.seconds = 14.9
    assert not await two.turn()
    assert not one.election.active(), "it stops before its Lease is over"
    clock.seconds = 15.0
    assert await two.turn()


async def test_a_replica_that_is_cut_off_stops_by_itself_and_returns() -> None:
    one, _, api, clock = pair()
    await one.turn()
    api.fail = lambda _: ApiError(None, "cut")
    clock.seconds = 12.9
    assert await one.turn()
    clock.seconds = 13.0
    assert not await one.turn()
    answers = one.answers
    clock.seconds = 163.0
    assert not await one.turn()
    assert one.answers == answers
    api.fail = lambda _: None
    assert await one.turn()
    assert one.turns == [True, False, True]


@pytest.mark.parametrize(("status", "counts"), [(None, 0), (503, 0), (403, 1), (409, 1)])
async def test_an_answer_that_says_nothing_is_no_contact(status: int | None, counts: int) -> None:
    one, _, api, _ = pair()
    api.fail = lambda _: ApiError(status, "x")
    await one.turn()
    assert one.answers == counts


async def test_a_race_has_one_winner() -> None:
    one, two, api, _ = pair()
    await asyncio.gather(one.turn(), two.turn())
    assert one.election.active() != two.election.active()
    assert api.objects[REF]["spec"]["holderIdentity"] in {"one", "two"}


@pytest.mark.looptime
async def test_it_is_given_back_at_the_end() -> None:
    one, two, api, _ = pair()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(one.election.run())
        await asyncio.sleep(0.1)
        task.cancel()
    assert api.objects[REF]["spec"]["holderIdentity"] == ""
    assert not one.election.active()
    assert await two.turn()
