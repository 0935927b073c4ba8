"""A whole agent in front of either Chatterbox server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from standins.agents import Lender, lender, manifest
from standins.borrowers import Borrower
from standins.chatterbox_server import KINDS, SOUND, ChatterboxStandin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

pytestmark = pytest.mark.component


@pytest.fixture
def speaker(request: pytest.FixtureRequest) -> Iterator[ChatterboxStandin]:
    with ChatterboxStandin(request.param) as server:
        yield server


@asynccontextmanager
async def lending(speaker: ChatterboxStandin, folder: Path) -> AsyncIterator[Lender]:
    async with lender(folder, manifest(speaker.url, dialect="chatterbox")) as lent:
        await lent.until(lambda up: up["lendable"])
        yield lent


async def until(holds: Any, within: float = 20.0) -> None:
    async with asyncio.timeout(within):
        while not holds():  # noqa: ASYNC110 - the books are looked at
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("speaker", KINDS, indirect=True)
async def test_speech_ends_with_its_reply(speaker: ChatterboxStandin, tmp_path: Path) -> None:
    async with lending(speaker, tmp_path) as lent:
        said = {"model": "chatterbox", "input": "hello", "seconds": 0.1}
        async with lent.ask("POST", "/v1/audio/speech", json=said) as answer:
            assert (answer.status, await answer.read()) == (200, SOUND)
        assert not list(lent.agent.host.ledger.jobs())


@pytest.mark.parametrize("speaker", ["travisvn"], indirect=True)
async def test_a_voice_in_a_form_is_work(speaker: ChatterboxStandin, tmp_path: Path) -> None:
    async with lending(speaker, tmp_path) as lent:
        form = aiohttp.FormData({"input": "hello", "model": "m"})
        form.add_field("voice_file", b"RIFF", filename="me.wav", content_type="audio/wav")
        async with lent.ask("POST", "/audio/speech/upload", data=form) as answer:
            assert (answer.status, await answer.read()) == (200, SOUND)


@pytest.mark.parametrize("speaker", ["travisvn"], indirect=True)
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/audio/speech/long"), ("PUT", "/audio/speech/long/7/resume")]
)
async def test_a_job_that_would_outlive_its_reply_never_reaches_the_server(
    speaker: ChatterboxStandin, tmp_path: Path, method: str, path: str
) -> None:
    async with lending(speaker, tmp_path) as lent:
        async with lent.ask(method, path, json={"input": "a book"}) as answer:
            assert (answer.status, answer.headers["x-vacancy-reason"]) == (400, "background_refused")
        assert speaker.seen(path) == 0


@pytest.mark.parametrize("speaker", KINDS, indirect=True)
async def test_speech_for_a_borrower_who_left_is_held_until_the_server_shows_its_end(
    speaker: ChatterboxStandin, tmp_path: Path
) -> None:
    async with lending(speaker, tmp_path) as lent:
        borrower = await Borrower.at(lent.port, lent.tokens.borrow)
        await borrower.ask({"input": "hello", "seconds": 4}, path="/v1/audio/speech")
        await asyncio.sleep(0.5)
        borrower.leave()
        await until(lambda: [job.phase for job in lent.agent.host.ledger.jobs()] == ["held"])
        began = asyncio.get_running_loop().time()
        async with lent.ask("POST", "/v1/audio/speech", json={"input": "me"}) as answer:
            assert answer.headers["x-vacancy-reason"] == "resource_busy"
        await until(lambda: not list(lent.agent.host.ledger.jobs()))
        assert asyncio.get_running_loop().time() - began > 2.0, "it spoke on for four seconds in all"
        freed = next(facts for event, facts in lent.told if event == "freed")
        assert freed["why"] in {
            "its status says that it does not speak",
            "it answers, which it does not while it speaks",
        }


@pytest.mark.parametrize("speaker", ["travisvn"], indirect=True)
async def test_what_the_owner_lets_it_say_is_the_owners(speaker: ChatterboxStandin, tmp_path: Path) -> None:
    async with lending(speaker, tmp_path) as lent:
        for path in ("/status", "/v1/status", "/memory?cleanup=true", "/audio/speech/long"):
            async with lent.ask("GET", path) as answer:
                assert answer.status == 403
        async with lent.ask("GET", "/health") as answer:
            assert answer.status == 200
        assert speaker.seen("/memory?cleanup=true") == 0
