"""Every streaming route of a real llama-server through a whole agent: its end is proved by its own marker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from standins import agreement
from standins.agents import lender, manifest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from lab.llama_lab import LlamaLab
    from standins.agents import Lender

pytestmark = [pytest.mark.component, pytest.mark.llama]
SAYS = [{"role": "user", "content": "hello"}]
ROUTES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": SAYS, "max_tokens": 5},
    "/chat/completions": {"messages": SAYS, "max_tokens": 5, "n": 1},
    "/v1/completions": {"prompt": "hello", "max_tokens": 5},
    "/completion": {"prompt": "hello", "n_predict": 5},
    "/completions": {"prompt": "hello", "n_predict": 5},
    "/v1/responses": {"input": "hello", "max_output_tokens": 5},
    "/v1/messages": {"messages": SAYS, "max_tokens": 5},
}


@pytest_asyncio.fixture
async def lent_llama(llama: LlamaLab, tmp_path: Path) -> AsyncIterator[Lender]:
    async with lender(tmp_path / "agent", manifest(llama.url, dialect="llamacpp", slots=2)) as lent:
        await lent.until(lambda up: up["lendable"])
        yield lent


async def nothing_is_left(lent: Lender) -> None:
    async with asyncio.timeout(5):
        while lent.agent.host.requests:  # noqa: ASYNC110 - its last turn of the loop
            await asyncio.sleep(0.005)
    agreement.check_empty(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)


@pytest.mark.parametrize("stream", [True, False], ids=["streaming", "whole"])
@pytest.mark.parametrize("path", ROUTES)
async def test_an_answer_leaves_nothing_held(lent_llama: Lender, path: str, stream: bool) -> None:
    body = ROUTES[path] | {"stream": stream, "ignore_eos": True}
    async with lent_llama.ask("POST", path, json=body) as got:
        text = await got.text()
        assert got.status == 200, text
        assert got.content_type == ("text/event-stream" if stream else "application/json")
        assert text
    await nothing_is_left(lent_llama)
    assert lent_llama.counts() == {"completed": 1}


async def test_a_route_that_this_server_does_not_serve_is_over_with_its_answer(lent_llama: Lender) -> None:
    async with lent_llama.ask("POST", "/v1/embeddings", json={"input": "hello"}) as got:
        assert got.status >= 400
        assert "X-Vacancy-Reason" not in got.headers
    await nothing_is_left(lent_llama)


async def test_what_a_client_looks_at_first(lent_llama: Lender) -> None:
    async with lent_llama.ask("GET", "/v1/models") as got:
        assert got.status == 200
        assert [model["id"] for model in (await got.json())["data"]] == ["lab"]
    async with lent_llama.ask("GET", "/health") as got:
        assert (got.status, await got.json()) == (200, {"status": "ok"})
    for path in ("/slots", "/props", "/metrics", "/%73lots", "/"):
        async with lent_llama.ask("GET", path) as got:
            assert (got.status, got.headers["X-Vacancy-Reason"]) == (403, "management_denied"), path
