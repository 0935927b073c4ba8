from __future__ import annotations

import asyncio

from vacancy_api.reasons import Reason
from vacancy_dialects import BodyShape
from vacancy_edge import Judged, Refusal
from vacancy_edge.helper_wire import Question
from vacancy_edge.lane_thread import ThreadLane
from vacancy_http.body import Body


async def ask(lane: ThreadLane, body: Body) -> Judged | Refusal:
    answer: asyncio.Future[Judged | Refusal] = asyncio.get_running_loop().create_future()
    question = Question(len(body), BodyShape.JSON, False, ("priority",), None, False)
    lane.submit(question, body, answer.set_result)
    assert not answer.done()
    return await answer


async def test_a_thread_answers_with_the_bytes_to_forward():
    lane = ThreadLane(asyncio.get_running_loop())
    try:
        assert await ask(lane, Body(b'{"model":"a"}')) == Judged("a")
        assert await ask(lane, Body(b'{"model":"a","priority":1}')) == Judged("a", forward=b'{"model":"a"}')
        refused = await ask(lane, Body(b"{"))
        assert isinstance(refused, Refusal)
        assert refused.reason is Reason.BAD_REQUEST
    finally:
        lane.close()


async def test_a_body_that_is_closed_is_refused():
    lane = ThreadLane(asyncio.get_running_loop())
    body = Body(b"{}")
    body.close()
    try:
        refused = await ask(lane, body)
    finally:
        lane.close()
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.BUFFER_BUDGET
