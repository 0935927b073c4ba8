"""A03: bytes behind a complete reply are taken for the next reply's head on the reused connection.

Seen as maximhq/bifrost#1613 (a left-over `217`). Right: every request gets its own answer; a connection that
is not at a message boundary is dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from standins import agreement
from standins.http_text import answer, reply, request
from standins.lending_rig import BORROW, LendingRig
from standins.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from standins.agents import Lender
    from standins.openai_server import OpenAiStandin

STRAY = "217\r\ndata: x\r\n"
FAKE = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"


async def answered(lent: Lender, **body: Any) -> str:
    async with lent.chat(**body) as got:
        assert got.status == 200
        return str((await got.json())["choices"][0]["message"]["content"])


@pytest.mark.component
@pytest.mark.parametrize(
    "stray", [STRAY, FAKE, "\r\n", "x" * 100_000], ids=["chunk", "reply", "line", "flood"]
)
async def test_the_next_request_gets_its_own_answer(lent: Lender, standin: OpenAiStandin, stray: str) -> None:
    assert await answered(lent, standin={"dirty": stray, "chunks": 3}) == "w0 w1 w2 "
    await until(lambda: standin.seen()[0]["ended"] is not None)  # the stray bytes are out
    assert await answered(lent, standin={"chunks": 2}) == "w0 w1 "
    first, second = standin.seen()
    assert first["connection"] != second["connection"]
    agreement.check_empty(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)


@pytest.mark.component
async def test_a_clean_connection_is_reused(lent: Lender, standin: OpenAiStandin) -> None:
    """Without this the test above would say nothing."""
    for _ in range(2):
        await answered(lent)
    first, second = standin.seen()
    assert first["connection"] == second["connection"]


@pytest.mark.component
async def test_one_that_was_closed_while_it_rested_is_replaced_unnoticed(
    lent: Lender, standin: OpenAiStandin
) -> None:
    await answered(lent, standin={"close": True})
    await until(lambda: standin.report()["open"] == 1)  # the one that asks
    assert await answered(lent, standin={"chunks": 1}) == "w0 "
    assert lent.counts() == {"completed": 2}


@pytest.mark.component
async def test_a_stream_with_stray_bytes_behind_it_is_over_and_whole(
    lent: Lender, standin: OpenAiStandin
) -> None:
    async with lent.chat(stream=True, standin={"dirty": STRAY}) as got:
        text = await got.text()
    assert text.endswith("data: [DONE]\n\n")
    assert await answered(lent, standin={"chunks": 1}) == "w0 "
    assert lent.counts() == {"completed": 2}


def test_stray_bytes_that_come_when_the_next_request_is_out_are_a_502_and_a_hold(tmp_path: Path) -> None:
    """The server may have begun with it, so it is not sent a second time."""
    rig = LendingRig(tmp_path)
    client = rig.port.connect(request(body={"model": "m"}, token=BORROW))
    rig.port.link().send(reply())
    client.got()
    client.send(request(body={"model": "m"}, token=BORROW))
    rig.port.link().send(STRAY.encode())
    rig.port.link().send(reply())
    got = answer(client.got())
    assert (got.status, got.reason) == (502, "upstream_invalid")
    assert len(rig.port.upstream.links) == 1
    assert len(list(rig.host.ledger.holds())) == 1
    agreement.check(rig.host, rig.journal, rig.reclaims)
    rig.tidy()


@pytest.mark.component
async def test_bytes_in_the_place_of_a_head_are_a_502_with_its_reason(
    lent: Lender, standin: OpenAiStandin
) -> None:
    async with lent.chat(standin={"raw": STRAY, "close": True}) as got:
        assert (got.status, got.headers["X-Vacancy-Reason"]) == (502, "upstream_invalid")
    assert lent.counts() == {"failed": 1}
    assert len(standin.seen()) == 1, "it may have started work, so it is not sent twice"
    assert (await lent.upstream())["held"] == 1
