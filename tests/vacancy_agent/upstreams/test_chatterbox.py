from __future__ import annotations

import pytest

from standins.loop_clock import LoopClock
from vacancy_agent.core.facts import Instant
from vacancy_agent.upstreams.ask import Answer, AskError, NoAnswerError
from vacancy_agent.upstreams.chatterbox import APART_S, MODEL_INFO, STATUS, ChatterboxWatcher
from vacancy_agent.upstreams.sighting import Idle, Unclear, Working

pytestmark = pytest.mark.looptime
AT = Instant(5.0)
QUIET = Idle(Instant(9.0), "its processes are quiet")
NOT_FOUND = Answer(404, b'{"detail": "Not Found"}')


class Local:
    async def look(self, not_before: Instant) -> Idle:
        return QUIET


class Server:
    """Gives these answers to a path, the last one again and again."""

    def __init__(self, **answers: list[Answer | AskError]) -> None:
        self._answers = {
            STATUS: answers.get("status", [NOT_FOUND]),
            MODEL_INFO: answers.get("info", [NOT_FOUND]),
        }

    async def get(self, path: str) -> Answer:
        answers = self._answers[path]
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(found, AskError):
            raise found
        return found


async def look(server: Server) -> object:
    return await ChatterboxWatcher(server, Local(), LoopClock()).look(AT)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"is_processing": false, "status": "idle"}', Idle(AT, "its status says that it does not speak")),
        (b'{"is_processing": true}', Working(AT, "its status says that it speaks")),
        (b'{"status": "healthy"}', Unclear("its status does not say whether it speaks")),
        (b'{"is_processing": 0}', Unclear("its status does not say whether it speaks")),
        (b"[]", Unclear("its status does not say whether it speaks")),
        (b"<html>", Unclear("answered 200 without JSON")),
    ],
)
async def test_the_server_that_tells(body: bytes, expected: object) -> None:
    assert await look(Server(status=[Answer(200, body)])) == expected


async def test_the_server_that_hangs_while_it_speaks_is_idle_when_it_answers_twice() -> None:
    info = Answer(200, b'{"loaded": true}')
    found = await look(Server(info=[info]))
    assert found == Idle(AT, "it answers, which it does not while it speaks")
    assert LoopClock().now() >= AT + APART_S
    about_to_speak = Server(info=[info, NoAnswerError("no answer to GET within 5 s")])
    assert isinstance(await look(about_to_speak), Working)


async def test_no_answer_is_no_proof() -> None:
    assert isinstance(await look(Server(status=[NoAnswerError("no answer")])), Working)
    assert await look(Server(status=[AskError("refused")])) == Unclear("refused")


async def test_a_third_kind_of_server_is_judged_by_its_processes() -> None:
    assert await look(Server()) == QUIET
    assert await look(Server(status=[Answer(401, b"")])) == QUIET
