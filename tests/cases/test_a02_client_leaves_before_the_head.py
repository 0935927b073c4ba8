"""A02: work that has no answer yet runs on for nobody, as something in between hides the disconnect.

Seen as 1rgs/claude-code-proxy#114. Right, in every phase: the upstream's connection is closed within a
second, the job is held by the dialect's rule, it counts as `client_closed` and not as an error, and the next
request is admitted as soon as the server is shown idle.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from standins import agreement
from standins.borrowers import Borrower
from standins.until import until

if TYPE_CHECKING:
    from standins.agents import Lender
    from standins.openai_server import OpenAiStandin

pytestmark = pytest.mark.component
PHASES: dict[str, dict[str, Any]] = {
    "no streaming, before the head": {"standin": {"head_delay_s": 30}},
    "streaming, before the head": {"stream": True, "standin": {"head_delay_s": 30}},
    "after the head, before the first word": {"stream": True, "standin": {"first_delay_s": 30}},
    "between two words": {"stream": True, "standin": {"every_s": 30}},
    "no streaming, in the body": {"standin": {"bytes": 1 << 30}},
}
SEEN = {"after the head, before the first word": b"\r\n\r\n", "between two words": b"w0 "}


@pytest.mark.parametrize("reset", [False, True], ids=["fin", "reset"])
@pytest.mark.parametrize("phase", PHASES)
async def test_the_upstream_is_closed_within_a_second(
    lent: Lender, standin: OpenAiStandin, phase: str, reset: bool
) -> None:
    async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
        await borrower.chat(**PHASES[phase])
        await borrower.until(SEEN[phase]) if phase in SEEN else await until(standin.seen)
        left = borrower.leave(reset=reset)
        await until(lambda: standin.seen()[0]["ended"] is not None, within=5)
    (seen,) = standin.seen()
    assert seen["how"] == "client gone"
    assert seen["ended"] - left <= 1.0
    assert lent.counts() == {"client_closed": 1}
    assert (await lent.upstream())["held"] == 1
    agreement.check(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)


async def test_the_next_one_is_admitted_once_the_server_is_shown_idle(
    lent: Lender, standin: OpenAiStandin
) -> None:
    async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
        await borrower.chat(standin={"head_delay_s": 30})
        await until(standin.seen)
        left = borrower.leave()
    async with lent.chat() as answer:
        assert (answer.status, answer.headers["X-Vacancy-Reason"]) == (503, "resource_busy")
        assert answer.headers["Retry-After"] == "2"
    await lent.until(lambda up: up["held"] == 0)
    assert time.monotonic() - left >= 1.5, "sooner, nothing would be proved"
    async with lent.chat() as answer:
        assert answer.status == 200
        assert (await answer.json())["object"] == "chat.completion"
    agreement.check_empty(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)


async def test_one_that_leaves_while_it_sends_its_body_never_was_work(
    lent: Lender, standin: OpenAiStandin
) -> None:
    async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
        await borrower.ask(b'{"model":', headers={"content-length": "100"})
        listener = lent.agent.listeners._running["up"].listener
        await until(lambda: listener.connection_count == 1 and listener.counters.requests == 1)
        borrower.leave()
        await until(lambda: listener.connection_count == 0)
    agreement.check_empty(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)
    assert standin.seen() == []
    assert lent.counts() == {}
