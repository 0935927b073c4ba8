"""The owner comes back, on a real systemd-logind: what becomes of the borrowers, by each policy."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import pytest

from standins import agreement
from standins.agents import free_port, lender
from standins.borrowers import Borrower
from standins.desks import lent_desk, owned
from standins.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from lab.logind_lab import LogindLab
    from standins.agents import Lender
    from standins.openai_server import OpenAiStandin

pytestmark = [pytest.mark.component, pytest.mark.logind]
SECONDS = {"chunks": 20, "every_s": 0.1}
LONG = {"chunks": 300, "every_s": 0.1}


async def come_back(logind_lab: LogindLab) -> str:
    """Somebody logs in at the machine."""
    return await logind_lab.create(type="wayland", seat="seat0")


@contextlib.asynccontextmanager
async def borrow(
    lent: Lender, standin_does: dict[str, Any], *, stream: bool = True, port: int = 0
) -> AsyncIterator[Borrower]:
    """A borrower whose order has been sent; of a stream some words have come."""
    async with await Borrower.at(port or lent.port, lent.tokens.borrow) as borrower:
        await borrower.chat(stream=stream, standin=standin_does)
        if "head_delay_s" not in standin_does:
            await borrower.until(b"w1 ")
        yield borrower


async def test_cancel_cuts_streams_and_answers_those_that_wait(
    standin: OpenAiStandin, logind_lab: LogindLab, tmp_path: Path
) -> None:
    async with (
        lent_desk(tmp_path, standin, logind_lab, slots=3, onOwnerReturn="cancel") as lent,
        borrow(lent, LONG) as streaming,
        borrow(lent, {"head_delay_s": 30}) as waiting,
        borrow(lent, {"head_delay_s": 30}, stream=False) as plain,
    ):
        await until(lambda: len(standin.seen()) == 3)
        returned = time.monotonic()
        await come_back(logind_lab)
        assert await streaming.end() == "reset"
        assert b"[DONE]" not in streaming.got
        for borrower in (waiting, plain):
            got = await borrower.answer()
            assert (got.status, got.reason) == (503, "owner_active")
            assert int(got.headers["retry-after"]) >= 1
            assert got.error["detail"] == {"cause": "taken_back"}
        await until(lambda: all(seen["ended"] for seen in standin.seen()))
        for seen in standin.seen():
            assert seen["how"] == "client gone"
            assert seen["ended"] - returned <= 2.0
        agreement.check(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)
        assert lent.counts() == {"cancelled": 3}
        assert (await lent.status())["upstreams"]["up"]["reclaim"]["phase"] == "proceeding"
        async with lent.chat() as refused:
            assert (refused.status, refused.headers["X-Vacancy-Reason"]) == (503, "owner_active")
        await lent.until(lambda up: up["held"] == 0)
        agreement.check_empty(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)


async def test_drain_lets_a_stream_come_to_its_end(
    standin: OpenAiStandin, logind_lab: LogindLab, tmp_path: Path
) -> None:
    async with (
        lent_desk(tmp_path, standin, logind_lab, onOwnerReturn="drain", drainTimeout="30s") as lent,
        borrow(lent, SECONDS) as borrower,
    ):
        await come_back(logind_lab)
        await lent.until(lambda up: up["reason"] == "owner_active")
        assert (await lent.status())["upstreams"]["up"]["reclaim"]["phase"] == "waiting"
        async with lent.chat() as refused:
            assert refused.headers["X-Vacancy-Reason"] == "owner_active"
        await borrower.until(b"data: [DONE]")
        await lent.until(lambda up: up["active"] == 0)
        assert lent.counts() == {"completed": 1}
        assert (await lent.status())["upstreams"]["up"]["reclaim"]["phase"] == "proceeding"
        agreement.check_empty(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)


async def test_drain_cuts_at_its_end_which_a_second_return_does_not_put_off(
    standin: OpenAiStandin, logind_lab: LogindLab, tmp_path: Path
) -> None:
    async with (
        lent_desk(tmp_path, standin, logind_lab, onOwnerReturn="drain", drainTimeout="2s") as lent,
        borrow(lent, LONG) as borrower,
    ):
        returned = time.monotonic()
        first = await come_back(logind_lab)
        await lent.until(lambda up: up["reason"] == "owner_active")
        await logind_lab.hint(first, locked=True)
        await logind_lab.create(type="wayland", seat="seat0")
        assert await borrower.end() == "reset"
        assert 2.0 <= time.monotonic() - returned < 6.0
        assert lent.counts() == {"cancelled": 1}
        agreement.check(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)


async def test_a_drain_stands_down_when_the_owner_leaves_in_time(
    standin: OpenAiStandin, logind_lab: LogindLab, tmp_path: Path
) -> None:
    async with (
        lent_desk(tmp_path, standin, logind_lab, onOwnerReturn="drain", drainTimeout="4s", slots=2) as lent,
        borrow(lent, LONG) as borrower,
    ):
        desk = await come_back(logind_lab)
        await lent.until(lambda up: up["reason"] == "owner_active")
        deadline = time.monotonic() + 4.0
        await logind_lab.logout(desk)
        await lent.until(lambda up: up["lendable"], within=3.5)
        assert (await lent.status())["upstreams"]["up"]["reclaim"]["phase"] == "stood_down"
        async with lent.chat() as another:
            assert another.status == 200, "admission is open again"
        before = borrower.got.count(b"data: ")
        while time.monotonic() < deadline + 1.0:
            before = borrower.got.count(b"data: ")
            await borrower.until(b"w%d " % (before + 2))
        assert lent.counts() == {"completed": 1}, "the first one still runs, past the deadline"
        borrower.leave()
        await lent.until(lambda up: up["held"] == 1)


async def test_finish_leaves_what_runs_alone(
    standin: OpenAiStandin, logind_lab: LogindLab, tmp_path: Path
) -> None:
    async with (
        lent_desk(tmp_path, standin, logind_lab, onOwnerReturn="finish") as lent,
        borrow(lent, SECONDS) as borrower,
    ):
        await come_back(logind_lab)
        await lent.until(lambda up: up["reason"] == "owner_active")
        await borrower.until(b"data: [DONE]")
        await lent.until(lambda up: up["active"] == 0)
        assert lent.counts() == {"completed": 1}
        async with lent.chat() as refused:
            assert refused.headers["X-Vacancy-Reason"] == "owner_active"


async def test_an_upstream_for_its_resource_alone_is_neither_cut_nor_refused(
    standin: OpenAiStandin, logind_lab: LogindLab, tmp_path: Path
) -> None:
    common = {"dialect": "openai", "target": standin.url, "onOwnerReturn": "cancel", "slots": 2}
    document = owned(standin.url)
    document["spec"]["resources"] += [{"name": "other", "type": "cpu"}]
    document["spec"]["upstreams"] = [
        common | {"name": "up", "port": free_port(), "resource": "ram"},
        common | {"name": "always", "port": free_port(), "resource": "other", "ownerScope": "resource"},
    ]
    always = document["spec"]["upstreams"][1]["port"]
    async with lender(tmp_path / "agent", document) as lent:
        await until(lambda: lent.agent.ready() == [])  # the load of the processors takes a moment
        async with borrow(lent, LONG) as one, borrow(lent, SECONDS, port=always) as other:
            await come_back(logind_lab)
            assert await one.end() == "reset"
            await other.until(b"data: [DONE]")
            async with borrow(lent, {"chunks": 2}, port=always) as another:
                await another.until(b"data: [DONE]")
            assert (await lent.status())["owner"]["vetoExempt"] == ["always"]
            agreement.check(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)


class TestTheOwnersSwitch:
    """Pausing at the machine means every upstream, and means now."""

    async def test_a_pause_cuts_and_resuming_lends_again(self, lent: Lender, standin: OpenAiStandin) -> None:
        async with borrow(lent, LONG) as borrower:
            status, said = await lent.api("POST", "/admin/pause", {"for": "1h"})
            assert (status, said["lending"]["allowed"]) == (200, False)
            assert await borrower.end() == "reset"
        async with lent.chat() as refused:
            assert (refused.status, refused.headers["X-Vacancy-Reason"]) == (503, "lending_disabled")
            assert 1 <= int(refused.headers["Retry-After"]) <= 300
        await lent.until(lambda up: up["held"] == 0)
        status, said = await lent.api("POST", "/admin/resume", {})
        assert (status, said["lending"]["allowed"]) == (200, True)
        async with lent.chat() as got:
            assert got.status == 200
        assert lent.counts() == {"cancelled": 1, "completed": 1}
        agreement.check_empty(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)

    async def test_whoever_waits_for_a_head_is_told_lending_is_off(
        self, lent: Lender, standin: OpenAiStandin
    ) -> None:
        async with borrow(lent, {"head_delay_s": 30}) as borrower:
            await until(standin.seen)
            await lent.api("POST", "/admin/lending", {"enabled": False})
            got = await borrower.answer()
            assert (got.status, got.reason) == (503, "lending_disabled")
