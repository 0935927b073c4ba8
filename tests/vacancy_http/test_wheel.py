"""One timer for all deadlines: never early, at most two ticks late, silent when there is nothing to watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hypothesis import given
from hypothesis import strategies as st

from standins.http_engine import DrivenLoop
from vacancy_http.wheel import NEVER, TICK_S, Wheel

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


class Member:
    def __init__(self, loop: DrivenLoop) -> None:
        self.loop = loop
        self.deadline = NEVER
        self.watch = False
        self.fired: list[float] = []
        self.ticks = 0

    def on_deadline(self) -> None:
        self.fired.append(self.loop.now)

    def on_tick(self, now: float) -> None:
        self.ticks += 1


def made() -> tuple[DrivenLoop, Wheel]:
    loop = DrivenLoop()
    return loop, Wheel(cast("AbstractEventLoop", loop))


@given(st.floats(0, 3), st.floats(0.01, 20))
def test_never_early_and_at_most_two_ticks_late(after: float, limit: float) -> None:
    loop, wheel = made()
    wheel.add(Member(loop))
    loop.advance(after)
    member = Member(loop)
    wheel.add(member)
    start = loop.now
    member.deadline = wheel.horizon + limit
    loop.advance(limit + 1)
    assert len(member.fired) == 1
    assert limit <= member.fired[0] - start + 1e-9
    assert member.fired[0] - start <= limit + 2 * TICK_S + 1e-9


def test_it_runs_only_while_there_is_something_to_watch() -> None:
    loop, wheel = made()
    assert loop.timers == 0
    member = Member(loop)
    wheel.add(member)
    assert (loop.timers, len(wheel)) == (1, 1)
    loop.advance(60)
    assert loop.timers == 1
    wheel.discard(member)
    wheel.discard(member)
    assert (loop.timers, len(wheel)) == (0, 0)


def test_the_horizon_is_fresh_after_a_rest() -> None:
    loop, wheel = made()
    loop.advance(1000)
    wheel.add(Member(loop))
    assert wheel.horizon >= loop.now


def test_ticks_come_to_those_who_watch() -> None:
    loop, wheel = made()
    members = [Member(loop), Member(loop)]
    members[0].watch = True
    for member in members:
        wheel.add(member)
    loop.advance(1.01)
    assert [m.ticks for m in members] == [4, 0]


def test_a_member_may_remove_itself_and_others_in_its_call() -> None:
    loop, wheel = made()
    first, second = Member(loop), Member(loop)

    def both() -> None:
        wheel.discard(first)
        wheel.discard(second)

    first.on_deadline = both  # type: ignore[method-assign]
    for member in (first, second):
        wheel.add(member)
        member.deadline = loop.now
    loop.advance(1)
    assert second.fired == []
    assert loop.timers == 0
