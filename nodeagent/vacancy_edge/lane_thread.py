"""Large bodies where no descriptor can be handed to a process (Windows, macOS): a thread.

The parser holds the interpreter lock, so the loop stands still while it runs: 276 ms for 64 MiB of token ids.
That is what these platforms get; docs/routes.md says so.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from vacancy_edge.judged import judge_plain
from vacancy_edge.refusals import helper_lost

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from vacancy_edge.bodies import Judged
    from vacancy_edge.helper_wire import Question
    from vacancy_edge.refusal import Refusal
    from vacancy_http.body import Body


class ThreadLane:
    """One thread that judges one body after the other."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(1, "large-bodies")

    def submit(self, question: Question, body: Body, done: Callable[[Judged | Refusal], None]) -> None:
        """Ask; `done` is called on the loop, once, and never from within this call."""

        def judge() -> Judged | Refusal:
            try:
                view = body.view()
            except ValueError:
                return helper_lost("it is gone")
            with view:
                return judge_plain(question.match(), view, question.content_type, relay=question.relay)

        future = self._loop.run_in_executor(self._pool, judge)
        future.add_done_callback(lambda future: done(future.result()))

    def close(self) -> None:
        """Wait for the body at hand; the rest is not judged any more."""
        self._pool.shutdown(cancel_futures=True)
