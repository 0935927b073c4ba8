"""A01: a client leaves in the midst of a stream; the upstream was never closed, and its place stayed taken.

Seen as BerriAI/litellm#30244. Right: the upstream sees the close within a second, the ledger's entry follows
the dialect's rule for holds, no gauge keeps counting it, and it is no success.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from typing import TYPE_CHECKING

import pytest

from standins import agreement
from standins.borrowers import Borrower
from standins.require import require
from standins.until import until

if TYPE_CHECKING:
    from standins.agents import Lender
    from standins.openai_server import OpenAiStandin

pytestmark = pytest.mark.component
LONG = {"chunks": 100, "every_s": 0.2}
"""Twenty seconds of words."""


async def metric(lent: Lender, name: str) -> float:
    """One sample of /metrics."""
    _, text = await lent.api("GET", "/metrics")
    line = next(line for line in text.splitlines() if line.startswith(name + " "))
    return float(line.split()[-1])


@pytest.mark.parametrize("reset", [False, True], ids=["fin", "reset"])
async def test_the_upstream_sees_it_and_every_count_comes_back(
    lent: Lender, standin: OpenAiStandin, reset: bool
) -> None:
    async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
        await borrower.chat(stream=True, standin=LONG)
        await borrower.until(b"w1 ")
        assert (await lent.upstream())["active"] == 1
        left = borrower.leave(reset=reset)
        await until(lambda: standin.seen()[0]["ended"] is not None, within=5)
    (seen,) = standin.seen()
    assert seen["how"] == "client gone"
    assert seen["ended"] - left <= 1.0
    assert seen["sent_chunks"] < 20
    agreement.check(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)
    assert lent.counts() == {"client_closed": 1}
    assert await metric(lent, 'vacancy_active_work{phase="forwarding",upstream="up"}') == 0
    assert await metric(lent, 'vacancy_requests_total{outcome="completed",upstream="up"}') == 0
    assert await metric(lent, 'vacancy_requests_total{outcome="client_closed",upstream="up"}') == 1
    await lent.until(lambda up: up["held"] == 0)
    assert await metric(lent, 'vacancy_active_work{phase="held",upstream="up"}') == 0
    agreement.check_empty(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)


async def test_it_is_held_for_as_long_as_the_server_shows_it(lent: Lender, standin: OpenAiStandin) -> None:
    """The dialect's rule: vLLM's gauges, read no sooner than a second and a half after the close."""
    async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
        await borrower.chat(stream=True, standin=LONG | {"lingers_s": 4.0})
        await borrower.until(b"w1 ")
        left = borrower.leave()
    await lent.until(lambda up: up["held"] == 1)
    async with lent.chat() as answer:
        assert answer.headers["X-Vacancy-Reason"] == "resource_busy"
    await lent.until(lambda up: up["held"] == 0)
    assert time.monotonic() - left >= 4.0
    assert standin.report()["running"] == 0
    async with lent.chat() as answer:
        assert answer.status == 200


async def test_with_curl_as_it_was_reported(lent: Lender, standin: OpenAiStandin) -> None:
    curl = shutil.which("curl")
    require(curl, "curl", "apt-get install curl")
    assert curl is not None
    standin.behave(**LONG)
    process = await asyncio.create_subprocess_exec(
        *(curl, "--silent", "--no-buffer", "--max-time", "2", f"{lent.url}/v1/chat/completions"),
        *("--header", f"Authorization: Bearer {lent.tokens.borrow}"),
        *("--data", '{"model": "m", "messages": [], "stream": true}'),
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    left = time.monotonic()
    assert process.returncode == 28, "curl ran out of time, as it should"
    assert said.count(b"data: ") >= 2
    await until(lambda: standin.seen()[0]["ended"] is not None, within=5)
    assert standin.seen()[0]["ended"] - left <= 1.0
    assert lent.counts() == {"client_closed": 1}
    await lent.until(lambda up: up["held"] == 0)
