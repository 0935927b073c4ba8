from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from vacancy_api.reasons import Reason
from vacancy_dialects import table_for
from vacancy_edge import LARGE, BodyHelper, Judged, Refusal
from vacancy_edge.bodyhelper import lane_for
from vacancy_edge.lane_thread import ThreadLane
from vacancy_http.body import Body, anonymous_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_edge.helper_wire import Question

CHAT = table_for("openai").classify("POST", b"/v1/chat/completions", None)
SLEEP = table_for("openai").classify("POST", b"/sleep", None)


class Recorder:
    """A lane that only writes down what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Question] = []

    def submit(self, question: Question, body: Body, done: Callable[[Judged | Refusal], None], /) -> None:
        self.asked.append(question)
        asyncio.get_running_loop().call_soon(done, Judged("from the lane"))

    def close(self) -> None:
        pass


def helper_with(lane: Recorder) -> BodyHelper:
    helper = BodyHelper(asyncio.get_running_loop())
    helper.close()
    helper._lane = lane
    return helper


async def test_what_its_head_decides_is_not_asked():
    helper = helper_with(lane := Recorder())
    refused = await helper.judge(CHAT, Body(b"{}"), None, b"gzip", None)
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.CONTENT_ENCODING
    assert await helper.judge(SLEEP, Body(b"x"), None, None, None) == Judged()
    assert lane.asked == []


async def test_work_is_asked_with_its_route():
    helper = helper_with(lane := Recorder())
    assert await helper.judge(CHAT, Body(b"{}"), b"application/json", None, b"q", relay=True) == Judged(
        "from the lane"
    )
    assert [(q.length, q.relay_fields, q.relay) for q in lane.asked] == [(2, ("priority",), True)]


async def test_whoever_stopped_waiting_is_not_answered():
    helper = helper_with(Recorder())
    waiting = asyncio.gather(helper.judge(CHAT, Body(b"{}"), None, None, None))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0)


async def test_the_lane_is_the_platforms(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "win32")
    lane = lane_for(asyncio.get_running_loop(), 1.0)
    assert isinstance(lane, ThreadLane)
    lane.close()


@pytest.mark.component
async def test_the_loop_goes_on_while_a_large_body_is_read():
    loop = asyncio.get_running_loop()
    data = b'{"model":"a","priority":1,"prompt":[' + b"1234," * (4 << 20) + b"1]}"
    assert len(data) > LARGE
    file = anonymous_file()
    file.write(data)
    body = Body.of_file(file, len(data))
    helper = BodyHelper(loop)
    try:
        assert await helper.judge(CHAT, body, None, None, None) == Judged("a")  # warm from here on
        began, turns = loop.time(), 0
        answer = asyncio.ensure_future(helper.judge(CHAT, body, None, None, None))
        while not answer.done():
            turns += 1
            await asyncio.sleep(0.001)
        assert await answer == Judged("a")
        assert turns >= 4 or loop.time() - began < 0.01
        assert bytes(body.view()[:40]).startswith(b'{"model":"a"             ,"prompt":[1234')
    finally:
        helper.close()
        body.close()
