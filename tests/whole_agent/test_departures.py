"""A borrower leaves a real llama-server, in every phase of its work.

The connection is closed within a second, the job is held until `/slots` proves the slot idle, and the next
job gets it. Nobody but the agent looks at the server meanwhile: asking it more often than every second and a
half keeps it from noticing who left.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from standins import agreement
from standins.agents import lender, manifest
from standins.borrowers import Borrower
from standins.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from lab.llama_lab import LlamaLab
    from standins.agents import Lender

pytestmark = [pytest.mark.component, pytest.mark.llama]
STORY = "Once upon a time there was an idle machine. "
SHORT = {"max_tokens": 4, "ignore_eos": True}
ENDLESS = {"max_tokens": 5000, "ignore_eos": True}


def prompt(times: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": STORY * times}]


def links(port: int) -> list[str]:
    """This process's connections to the server, as long as they are open from our side."""
    found = psutil.Process().net_connections("tcp")
    return [
        one.status for one in found if one.raddr and one.raddr.port == port and one.status == "ESTABLISHED"
    ]


PHASES: dict[str, tuple[dict[str, Any], bytes | None]] = {
    "before the head": ({"messages": prompt(35), "stream": True} | ENDLESS, None),
    "while it reads the prompt": ({"messages": prompt(40)} | SHORT, None),
    "in the midst of the stream": ({"messages": prompt(1), "stream": True} | ENDLESS, b"delta"),
    "while it makes a whole answer": ({"messages": prompt(1)} | ENDLESS, None),
}


@pytest.mark.parametrize("phase", PHASES)
async def test_its_slot_is_free_again(slow_llama: LlamaLab, tmp_path: Path, phase: str) -> None:
    body, seen = PHASES[phase]
    document = manifest(slow_llama.url, dialect="llamacpp")
    async with lender(tmp_path / "agent", document) as lent:
        await lent.until(lambda up: up["lendable"])
        async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
            await borrower.chat(**body)
            await until(lambda: len(links(slow_llama.port)) == 1)
            await borrower.until(seen) if seen is not None else await working(lent, slow_llama)
            left = borrower.leave()
            await until(lambda: not links(slow_llama.port), within=1.0)
            agreement.check(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)
            (job,) = lent.agent.host.ledger.holds()
            assert job.why == "the borrower left before the reply was complete"
        async with lent.chat(**SHORT) as busy:
            assert busy.headers["X-Vacancy-Reason"] == "resource_busy"
        await until(lambda: not list(lent.agent.host.ledger.jobs()), within=90)
        assert time.monotonic() - left >= 1.5
        assert [facts["by"] for event, facts in lent.told if event == "freed"] == ["proof"]
        assert slow_llama.busy() == 0
        async with lent.chat(messages=prompt(1), **SHORT) as got:
            assert got.status == 200
        assert lent.counts() == {"client_closed": 1, "completed": 1}
        agreement.check_empty(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)


async def working(lent: Lender, server: LlamaLab) -> None:
    """The server has taken the request up: its process uses the processor, which asks it nothing."""
    process = psutil.Process(server.pid)
    before = process.cpu_times().user
    await until(lambda: process.cpu_times().user > before + 0.15)
    assert len(lent.agent.host.requests) == 1, "it had an answer already"
