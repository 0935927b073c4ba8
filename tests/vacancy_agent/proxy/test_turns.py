from __future__ import annotations

import asyncio

import pytest

from vacancy_agent.proxy.turns import Turns


async def test_between_two_calls_the_loop_has_a_turn() -> None:
    order: list[str] = []
    loop = asyncio.get_running_loop()
    turns = Turns(loop.call_soon)
    for number in range(3):
        turns.take(lambda number=number: order.append(f"body {number}"))  # type: ignore[misc]
    assert order == [], "not within the callback that brought it"
    for turn in range(3):
        await asyncio.sleep(0)
        order.append(f"turn {turn}")
    assert order == ["body 0", "turn 0", "body 1", "turn 1", "body 2", "turn 2"]
    turns.take(lambda: order.append("another"))
    await asyncio.sleep(0)
    assert order[-1] == "another"


def test_one_that_fails_keeps_no_other_from_its_turn() -> None:
    soon: list[object] = []
    done: list[int] = []
    turns = Turns(soon.append)
    turns.take(lambda: done[0])  # type: ignore[arg-type, return-value]
    turns.take(lambda: done.append(1))
    with pytest.raises(IndexError):
        soon.pop()()  # type: ignore[operator]
    soon.pop()()  # type: ignore[operator]
    assert (done, soon) == ([1], [])
