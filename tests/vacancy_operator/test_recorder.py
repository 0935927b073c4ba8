from __future__ import annotations

from typing import TYPE_CHECKING, cast

from standins.operator_api import DictApi, HandClock
from standins.operator_world import lending_host
from vacancy_operator.api import ApiError
from vacancy_operator.core.facts import Notice
from vacancy_operator.recorder import AGAIN_AFTER_S, MOST_KEPT, Recorder, event

if TYPE_CHECKING:
    from vacancy_operator.api import Api

LOST = Notice("AgentLost", "AgentConnected is Unknown", warning=True)


def recorder() -> tuple[Recorder, DictApi, HandClock]:
    api, clock = DictApi(), HandClock()
    return Recorder(cast("Api", api), clock, "op-1"), api, clock


async def test_the_same_is_posted_once_in_a_while() -> None:
    posts, api, clock = recorder()
    await posts.post(lending_host(), LOST)
    await posts.post(lending_host(), LOST)
    await posts.post(lending_host(uid="other"), LOST)
    clock.seconds = AGAIN_AFTER_S
    await posts.post(lending_host(), LOST)
    assert api.calls == ["create Event"] * 3


async def test_one_that_is_refused_stops_nothing() -> None:
    posts, api, _ = recorder()
    api.fail = lambda _: ApiError(403, "no")
    await posts.post(lending_host(), LOST)


async def test_it_does_not_grow_without_end() -> None:
    posts, _, _ = recorder()
    for index in range(MOST_KEPT + 10):
        await posts.post(lending_host(), Notice("Valid", str(index)))
    assert len(posts._posted) == MOST_KEPT


def test_an_event_names_its_host() -> None:
    found = event(lending_host(), LOST, "op-1", HandClock().now())
    assert found["regarding"]["uid"] == "uid-1"
    assert (found["type"], found["eventTime"]) == ("Warning", "2027-01-15T08:00:00.000000Z")
