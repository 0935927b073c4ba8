from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if sys.platform != "linux":
    pytest.skip("the helper process is Linux's", allow_module_level=True)

from standins.until import until
from vacancy_api.reasons import Reason
from vacancy_dialects import BodyShape, table_for
from vacancy_edge import Judged, Refusal
from vacancy_edge.helper_wire import Question
from vacancy_edge.lane_process import ProcessLane
from vacancy_http.body import Body, anonymous_file

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.component


def body_of(data: bytes) -> Body:
    file = anonymous_file()
    file.write(data)
    return Body.of_file(file, len(data))


@contextmanager
def lane_with(deadline_s: float = 30.0) -> Iterator[ProcessLane]:
    lane = ProcessLane(asyncio.get_running_loop(), deadline_s)
    try:
        yield lane
    finally:
        lane.close()


def ask(lane: ProcessLane, body: Body) -> asyncio.Future[Judged | Refusal]:
    answer: asyncio.Future[Judged | Refusal] = asyncio.get_running_loop().create_future()
    lane.submit(
        Question(len(body), BodyShape.JSON, False, ("priority",), None, False), body, answer.set_result
    )
    assert not answer.done()
    return answer


def lost(answer: Judged | Refusal) -> bool:
    return isinstance(answer, Refusal) and answer.reason is Reason.BUFFER_BUDGET and answer.retry_after == 2


async def test_one_process_answers_all_in_order_and_blanks_what_has_to_go():
    bodies = [body_of(b'{"model":"m%d","priority":1}' % count) for count in range(5)]
    with lane_with() as lane:
        assert lane.pid is None
        answers = await asyncio.gather(*[ask(lane, body) for body in bodies])
        assert answers == [Judged(f"m{count}") for count in range(5)]
        assert lane.starts == 1
    assert [body.bytes for body in bodies] == [b'{"model":"m%d"             }' % count for count in range(5)]
    for body in bodies:
        body.close()


async def test_a_body_that_an_edit_made_longer_is_longer_here_too():
    padding = b"x" * (5 << 20)
    before = b'{"model":"a","keep_alive":-1,"prompt":"%b"}' % padding
    body = body_of(before)
    match = table_for("ollama").classify("POST", b"/api/generate", None)
    assert match.route is not None
    with lane_with() as lane:
        answer: asyncio.Future[Judged | Refusal] = asyncio.get_running_loop().create_future()
        question = Question.about(match.route, len(body), None, relay=False)
        with body.view() as held:  # as a transport has it that still writes
            lane.submit(question, body, answer.set_result)
            judged = await answer
            assert bytes(held[:20]) == before[:20]
    assert isinstance(judged, Judged)
    assert (judged.model, judged.forward) == ("a:latest", None)
    assert len(body) == len(before) + 2
    assert body.bytes == before.replace(b"-1", b"1800")
    body.close()


async def test_a_process_that_dies_while_idle_is_replaced_unnoticed():
    body = body_of(b'{"model":"a"}')
    with lane_with() as lane:
        assert await ask(lane, body) == Judged("a")
        assert lane.pid is not None
        os.kill(lane.pid, signal.SIGKILL)
        await until(lambda: lane.pid is None)
        assert await ask(lane, body) == Judged("a")
        assert lane.starts == 2
    body.close()


async def test_a_process_that_dies_at_work_costs_one_refusal_and_the_next_is_answered():
    body = body_of(b'{"model":"a"}')
    with lane_with() as lane:
        assert await ask(lane, body) == Judged("a")
        assert lane.pid is not None
        os.kill(lane.pid, signal.SIGSTOP)
        first, second = ask(lane, body), ask(lane, body)
        await asyncio.sleep(0.05)
        os.kill(lane.pid, signal.SIGKILL)
        assert lost(await first)
        assert await second == Judged("a")
    body.close()


async def test_a_process_that_hangs_is_stopped_at_the_deadline():
    body = body_of(b'{"model":"a"}')
    with lane_with(deadline_s=2.0) as lane:
        assert await ask(lane, body) == Judged("a")
        pid = lane.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        assert lost(await ask(lane, body))
        assert await ask(lane, body) == Judged("a")
        assert lane.pid != pid
    body.close()


async def test_a_body_that_is_gone_by_its_turn_is_refused():
    body = body_of(b'{"model":"a"}')
    with lane_with() as lane:
        answer = ask(lane, body)
        body.close()
        assert lost(await answer)
        assert lane.starts == 0


async def test_a_process_that_cannot_start_is_a_refusal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    body = body_of(b'{"model":"a"}')
    with lane_with() as lane:
        assert lost(await ask(lane, body))
    body.close()


async def test_closing_refuses_what_is_still_asked_and_what_comes_later():
    body = body_of(b'{"model":"a"}')
    with lane_with() as lane:
        assert await ask(lane, body) == Judged("a")
        assert lane.pid is not None
        os.kill(lane.pid, signal.SIGSTOP)
        answers = [ask(lane, body) for _ in range(2)]
        await asyncio.sleep(0)
    assert all(lost(answer) for answer in await asyncio.gather(*answers))
    assert lost(await ask(lane, body))
    body.close()
