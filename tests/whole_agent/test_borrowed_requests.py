"""Borrowed requests over real sockets, through a whole agent: bodies, limits, servers that fail."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from standins import agreement
from standins.agents import free_port, lender, manifest
from standins.borrowers import Borrower
from standins.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from standins.agents import Lender
    from standins.openai_server import OpenAiStandin

pytestmark = pytest.mark.component
MIB = 1 << 20


def check(lent: Lender) -> None:
    agreement.check(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)


def check_empty(lent: Lender) -> None:
    agreement.check_empty(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)


def large(model: str, size: int = 5 * MIB) -> bytes:
    """A body that only the helper process reads."""
    return b'{"prompt":"' + b"x" * size + b'","model":"' + model.encode() + b'","messages":[]}'


class TestLargeBodies:
    async def test_one_is_judged_aside_and_forwarded_as_it_came(
        self, lent: Lender, standin: OpenAiStandin
    ) -> None:
        raw = large("m")
        async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
            await borrower.ask(raw)
            assert (await borrower.answer()).status == 200
        (seen,) = standin.seen()
        assert seen["body_bytes"] == len(raw)
        check_empty(lent)

    async def test_its_model_is_what_the_gate_charges(self, standin: OpenAiStandin, tmp_path: Path) -> None:
        models = {"items": [{"name": "huge", "minFreeMiB": 60_000_000}]}
        async with lender(tmp_path / "agent", manifest(standin.url, models=models)) as lent:
            for model, status in (("huge", 503), ("small", 200)):
                async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
                    await borrower.ask(large(model))
                    assert (await borrower.answer()).status == status
            assert len(standin.seen()) == 1

    async def test_what_is_wrong_far_inside_is_refused(self, lent: Lender, standin: OpenAiStandin) -> None:
        async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
            await borrower.ask(large("m")[:-1] + b',"MODEL":"n"}')
            got = await borrower.answer()
        assert (got.status, got.reason) == (400, "ambiguous_body")
        assert standin.seen() == []

    async def test_a_borrower_that_leaves_while_it_is_read_never_was_work(
        self, lent: Lender, standin: OpenAiStandin
    ) -> None:
        app = lent.agent.listeners._running["up"].listener.app
        for _ in range(3):
            async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
                await borrower.ask(large("m", 30 * MIB))
                await until(lambda: app.budget.used >= 30 * MIB)  # type: ignore[attr-defined]
                borrower.leave()
            await until(lambda: app.budget.used == 0)  # type: ignore[attr-defined]
        async with lent.chat() as got:
            assert got.status == 200
        assert lent.counts() == {"completed": 1}
        check_empty(lent)

    async def test_a_chunked_one_is_judged_like_any_other(self, lent: Lender, standin: OpenAiStandin) -> None:
        raw = large("m")
        async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
            await borrower.ask(headers={"transfer-encoding": "chunked", "content-type": "application/json"})
            for at in range(0, len(raw), MIB):
                piece = raw[at : at + MIB]
                await borrower.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            await borrower.send(b"0\r\n\r\n")
            assert (await borrower.answer()).status == 200
        (seen,) = standin.seen()
        assert seen["body_bytes"] == len(raw)
        assert ["content-length", str(len(raw))] in seen["headers"]

    async def test_one_that_is_too_large_is_refused_before_it_is_sent(self, lent: Lender) -> None:
        async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
            await borrower.ask(headers={"content-length": str(65 * MIB), "content-type": "application/json"})
            got = await borrower.answer()
        assert (got.status, got.reason) == (413, "body_too_large")
        assert "64 MiB" in got.error["message"]

    async def test_bodies_together_stay_within_the_budget(
        self, standin: OpenAiStandin, tmp_path: Path
    ) -> None:
        limits = {"maxRequestBodyMiB": 2, "maxBufferedBodyMiB": 2}
        headers = {"content-type": "application/json"}
        raw = large("m", MIB + MIB // 2)
        async with (
            lender(tmp_path / "agent", manifest(standin.url, spec_limits=limits)) as lent,
            await Borrower.at(lent.port, lent.tokens.borrow) as first,
            await Borrower.at(lent.port, lent.tokens.borrow) as second,
        ):
            await first.ask(headers=headers | {"content-length": str(len(raw))})
            await first.send(raw[:-1])
            await until(lambda: lent.agent.listeners._running["up"].listener.app.budget.used > MIB)  # type: ignore[attr-defined]
            await second.ask(raw)
            got = await second.answer()
            assert (got.status, got.reason, got.headers["retry-after"]) == (503, "buffer_budget", "2")
            await first.send(raw[-1:])
            assert (await first.answer()).status == 200
            await second.ask(raw)
            assert (await second.answer()).status == 200
            check_empty(lent)


class TestServersThatFail:
    async def test_one_that_is_not_there_holds_nothing_and_is_no_use(self, tmp_path: Path) -> None:
        async with lender(tmp_path / "agent", manifest(f"http://127.0.0.1:{free_port()}")) as lent:
            async with lent.chat() as got:
                assert (got.status, got.headers["X-Vacancy-Reason"]) == (503, "upstream_unavailable")
                assert int(got.headers["Retry-After"]) >= 1
            assert lent.counts() == {"failed": 1}
            status = await lent.status()
            assert status["owner"]["usageToday"] == []
            check_empty(lent)

    @pytest.mark.parametrize(
        "does",
        [{"raw": "ICY 200\r\n\r\n"}, {"raw": "", "close": True}, {"cut": 0}],
        ids=["ICY", "silent", "cut"],
    )
    async def test_one_that_gives_no_answer_is_a_502_or_a_visible_break(
        self, lent: Lender, does: dict[str, Any]
    ) -> None:
        async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
            await borrower.chat(standin=does)
            if "cut" in does:
                assert await borrower.end() == "reset"
            else:
                got = await borrower.answer()
                assert (got.status, got.reason) == (502, "upstream_invalid")
        assert lent.counts() == {"failed": 1}
        await lent.until(lambda up: up["held"] == 1 and up["active"] == 0)
        check(lent)
        await lent.until(lambda up: up["held"] == 0)

    async def test_a_stream_that_ends_without_its_marker_is_held_until_the_server_is_idle(
        self, lent: Lender, standin: OpenAiStandin
    ) -> None:
        async with lent.chat(stream=True, standin={"done": False, "chunks": 1}) as got:
            assert b"finish_reason" in await got.read()
        assert lent.counts() == {"completed": 1}, "a finish_reason is a marker, too"
        await lent.until(lambda up: up["active"] == 0)
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 12\r\n\r\n"
        async with lent.chat(stream=True, standin={"raw": head + "data: {}\n\n\r\n"}) as got:
            assert got.status == 200
            await got.read()
        await lent.until(lambda up: up["held"] == 1)
        async with lent.chat() as got:
            assert got.headers["X-Vacancy-Reason"] == "resource_busy"
        await lent.until(lambda up: up["held"] == 0)
        async with lent.chat() as got:
            assert got.status == 200
        assert lent.counts() == {"completed": 2, "failed": 1}

    async def test_its_own_refusal_passes_and_frees_its_slot(self, lent: Lender) -> None:
        async with lent.chat(standin={"status": 429}) as got:
            assert got.status == 429
            assert "X-Vacancy-Reason" not in got.headers
            assert (await got.json())["error"]["message"] == "as told"
        await lent.until(lambda up: up["active"] == 0)
        check_empty(lent)


class TestWiring:
    async def test_several_slots_serve_at_once(self, standin: OpenAiStandin, tmp_path: Path) -> None:
        async with lender(tmp_path / "agent", manifest(standin.url, slots=3)) as lent:

            async def one() -> int:
                async with lent.chat(stream=True, standin={"chunks": 5, "every_s": 0.2}) as got:
                    await got.read()
                    return int(got.status)

            served = [asyncio.get_running_loop().create_task(one()) for _ in range(3)]
            await until(lambda: standin.report()["running"] == 3)
            async with lent.chat() as got:
                assert got.headers["X-Vacancy-Reason"] == "resource_busy"
            assert await asyncio.gather(*served) == [200, 200, 200]
            await lent.until(lambda up: up["active"] == 0)
            check_empty(lent)

    async def test_the_server_s_credential_comes_from_its_file(
        self, standin: OpenAiStandin, tmp_path: Path
    ) -> None:
        secret = tmp_path / "agent" / "state" / "secrets" / "key"
        secret.mkdir(parents=True)
        (secret / "token").write_text("own-secret\n")
        document = manifest(standin.url, credentialSecretRef={"name": "key", "key": "token"})
        async with lender(tmp_path / "agent", document) as lent:
            async with lent.chat() as got:
                assert got.status == 200
            async with lent.ask("GET", "/v1/models") as got:
                assert got.status == 200
            for seen in standin.seen():
                assert ["authorization", "Bearer own-secret"] in seen["headers"]
                assert lent.tokens.borrow not in json.dumps(seen)

    async def test_a_token_of_another_scope_borrows_nothing(
        self, lent: Lender, standin: OpenAiStandin
    ) -> None:
        for token in (lent.tokens.read, lent.tokens.admin):
            for method, path in (("GET", "/v1/models"), ("POST", "/v1/chat/completions")):
                headers = {"Authorization": f"Bearer {token}"}
                async with lent.ask(method, path, headers=headers, json={}) as got:
                    assert (got.status, got.headers["X-Vacancy-Reason"]) == (401, "unauthorized")
        assert standin.seen() == []

    async def test_what_was_borrowed_is_counted_by_borrower(self, lent: Lender) -> None:
        for _ in range(2):
            async with lent.chat() as got:
                assert got.status == 200
            await lent.until(lambda up: up["active"] == 0)
        (used,) = (await lent.status())["owner"]["usageToday"]
        assert (used["borrower"], used["requests"]) == ("borrow", 2)
        assert used["seconds"] >= 0
