"""Judging bodies above 4 MiB without holding up the loop."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, Protocol

from vacancy_edge.bodies import NOTHING
from vacancy_edge.helper_wire import Question
from vacancy_edge.judged import is_judged, judge_head
from vacancy_edge.lane_thread import ThreadLane

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from vacancy_dialects import Match
    from vacancy_edge.bodies import Judged
    from vacancy_edge.refusal import Refusal
    from vacancy_http.body import Body

LARGE: Final = 4 << 20
"""Bytes: what is larger is judged by the helper."""


class Lane(Protocol):
    """Where large bodies are judged: a process where descriptors can be passed, else a thread."""

    def submit(self, question: Question, body: Body, done: Callable[[Judged | Refusal], None], /) -> None:
        """Ask; `done` is called on the loop, once, and never from within this call."""

    def close(self) -> None:
        """End; what is still asked is refused or dropped."""


def lane_for(loop: asyncio.AbstractEventLoop, deadline_s: float) -> Lane:
    """The lane of this platform."""
    if sys.platform == "linux":
        from vacancy_edge.lane_process import ProcessLane  # noqa: PLC0415 - that module is Linux's alone

        return ProcessLane(loop, deadline_s)
    else:  # noqa: RET505 - what follows an `if sys.platform` without it is unreachable to the type checker
        return ThreadLane(loop)


class BodyHelper:
    """Judges large bodies; the helper behind it starts with the first one and stays warm."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, deadline_s: float = 10.0) -> None:
        """`deadline_s`: seconds after which a body still being read is refused and its reader stopped."""
        self._loop = loop
        self._lane = lane_for(loop, deadline_s)

    def submit(
        self,
        match: Match,
        body: Body,
        content_type: bytes | None,
        content_encoding: bytes | None,
        query: bytes | None,
        *,
        relay: bool = False,
        done: Callable[[Judged | Refusal], None],
    ) -> None:
        """`judge_body` for a large body; `done` is called with its answer on the loop, once, later.

        What had to be edited is then edited in the body itself, with spaces where it got shorter, and
        `Judged.forward` is None. The body may be closed meanwhile; the answer is a refusal then or stands for
        nothing.
        """
        refused = judge_head(match, content_type, content_encoding, query)
        if refused is not None or match.route is None or not is_judged(match):
            self._loop.call_soon(done, refused or NOTHING)
            return
        self._lane.submit(Question.about(match.route, len(body), content_type, relay=relay), body, done)

    async def judge(
        self,
        match: Match,
        body: Body,
        content_type: bytes | None,
        content_encoding: bytes | None,
        query: bytes | None,
        *,
        relay: bool = False,
    ) -> Judged | Refusal:
        """`submit` for code that can wait."""
        answer: asyncio.Future[Judged | Refusal] = self._loop.create_future()

        def done(verdict: Judged | Refusal) -> None:
            if not answer.done():
                answer.set_result(verdict)

        self.submit(match, body, content_type, content_encoding, query, relay=relay, done=done)
        return await answer

    def close(self) -> None:
        """End the helper."""
        self._lane.close()
