"""A real Ollama behind a whole agent: what the owner gets back when, and when that is claimed."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psutil
import pytest

from standins import agreement
from standins.agents import lender, manifest
from standins.borrowers import Borrower
from standins.clock import AheadClock
from standins.desks import lent_desk, owned
from standins.until import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.logind_lab import LogindLab
    from lab.ollama_lab import OllamaLab
    from standins.agents import Lender

pytestmark = [pytest.mark.component, pytest.mark.ollama, pytest.mark.logind]
HELLO = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 2}
ONCE = {"model": "tiny", "prompt": "hi", "stream": False, "options": {"num_predict": 2}}
STORY = [{"role": "user", "content": "There was an idle machine that nobody used at night. " * 20}]


async def come_back(logind_lab: LogindLab) -> str:
    return await logind_lab.create(type="wayland", seat="seat0")


def claims(lent: Lender) -> list[object]:
    return [facts["reason"] for event, facts in lent.told if event == "reclaimed"]


async def condition(lent: Lender) -> tuple[str, str]:
    lent.agent.findings.look()
    found = next(one for one in (await lent.status())["conditions"] if one["type"] == "Reclaimed")
    return found["status"], found["reason"]


async def claimed_once_empty(lent: Lender, server: OllamaLab) -> None:
    """Wait for the claim; whenever it is made, the server's list is empty."""
    async with asyncio.timeout(30):
        while True:
            listed = await asyncio.to_thread(server.loaded)
            if "Reclaimed" in claims(lent):
                assert await asyncio.to_thread(server.loaded) == {}
                return
            if not listed:
                await asyncio.sleep(0.01)


async def test_an_owners_return_cuts_unloads_and_is_claimed_when_the_list_is_empty(
    ollama: OllamaLab, logind_lab: LogindLab, tmp_path: Path
) -> None:
    async with lent_desk(tmp_path, ollama, logind_lab, dialect="ollama") as lent:  # type: ignore[arg-type]
        async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
            await borrower.chat(model="small", messages=HELLO["messages"], stream=True, max_tokens=4000)
            await borrower.until(b'"delta"')
            assert list(ollama.loaded()) == ["small:latest"]
            await come_back(logind_lab)
            assert await borrower.end() == "reset"
        await claimed_once_empty(lent, ollama)
        assert claims(lent) == ["Reclaimed"]
        assert await condition(lent) == ("True", "Reclaimed")
        unload = (await lent.status())["upstreams"]["up"]["reclaim"]["unload"]
        assert unload == {"shown": True, "why": "it showed that it let go"}
        await lent.until(lambda up: up["held"] == 0, within=30)
        agreement.check_empty(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)


async def test_an_owner_who_is_there_when_the_agent_starts_gets_the_memory_too(
    ollama: OllamaLab, logind_lab: LogindLab, tmp_path: Path
) -> None:
    ollama.ask("POST", "/api/generate", ONCE)
    assert list(ollama.loaded()) == ["tiny:latest"]
    await come_back(logind_lab)
    async with lender(tmp_path / "agent", owned(ollama.url, dialect="ollama")) as lent:
        await until(lambda: claims(lent) == ["Reclaimed"])
        assert ollama.loaded() == {}


@contextmanager
def owners_own_stream(server: OllamaLab, tokens: int) -> Iterator[threading.Thread]:
    """The owner asks the server themselves, past the agent."""
    body = {"model": "small", "prompt": "hi", "options": {"num_predict": tokens, "temperature": 0}}
    data = json.dumps(body).encode()
    began = threading.Event()

    def read() -> None:
        with urllib.request.urlopen(server.url + "/api/generate", data=data, timeout=300) as answer:  # noqa: S310 - our own address
            for _ in answer:
                began.set()

    thread = threading.Thread(target=read)
    thread.start()
    assert began.wait(60)
    yield thread
    thread.join()


async def not_confirmed_until_it_ends(lent: Lender, server: OllamaLab, clock: AheadClock) -> None:
    """The unload was asked for, ten seconds pass, something still runs; then it ends."""
    await until(lambda: lent.agent.unloaded, within=20)
    await asyncio.sleep(0.5)
    assert await condition(lent) == ("Unknown", "Unloading")
    clock.advance(10.0)
    await until(lambda: claims(lent) == ["UnloadNotConfirmed"])
    assert list(server.loaded()) == ["small:latest"]
    assert await condition(lent) == ("False", "UnloadNotConfirmed")
    await until(lambda: len(claims(lent)) > 1, within=150)
    assert claims(lent) == ["UnloadNotConfirmed", "Reclaimed"]
    assert server.loaded() == {}


async def test_a_stream_of_the_owners_own_keeps_it_from_being_confirmed(
    ollama: OllamaLab, logind_lab: LogindLab, tmp_path: Path
) -> None:
    clock = AheadClock()
    async with lent_desk(tmp_path, ollama, logind_lab, clock, dialect="ollama") as lent:  # type: ignore[arg-type]
        with owners_own_stream(ollama, 250):
            await come_back(logind_lab)
            await not_confirmed_until_it_ends(lent, ollama, clock)


async def test_a_borrowers_stream_that_may_finish_keeps_it_from_being_confirmed(
    ollama: OllamaLab, logind_lab: LogindLab, tmp_path: Path
) -> None:
    """Past `completionTimeout` the unload is asked for beside the stream, which goes on to its end."""
    clock = AheadClock()
    facts = {"dialect": "ollama", "onOwnerReturn": "finish", "completionTimeout": "1s"}
    async with (
        lent_desk(tmp_path, ollama, logind_lab, clock, **facts) as lent,  # type: ignore[arg-type]
        await Borrower.at(lent.port, lent.tokens.borrow) as borrower,
    ):
        await borrower.chat(model="small", messages=HELLO["messages"], stream=True, max_tokens=250)
        await borrower.until(b'"delta"')
        await come_back(logind_lab)
        await not_confirmed_until_it_ends(lent, ollama, clock)
        await borrower.until(b"data: [DONE]", within=150)
        assert lent.counts() == {"completed": 1}


class Processor:
    """When the server's processes last used the processor."""

    def __init__(self, server: OllamaLab) -> None:
        self._top = psutil.Process(server.pid)
        self._used = self._now()
        self.last = time.monotonic()

    def look(self) -> None:
        used = self._now()
        if used > self._used + 0.02:
            self._used, self.last = used, time.monotonic()

    def _now(self) -> float:
        tree = [self._top, *self._top.children(recursive=True)]
        return sum(sum(process.cpu_times()[:2]) for process in tree)


async def test_a_borrower_gone_in_its_prompt_is_held_until_the_runner_is_quiet(
    ollama: OllamaLab, tmp_path: Path
) -> None:
    """Ollama's own list tells nothing of the work: `expires_at` moves on as if it had ended."""
    async with lender(tmp_path / "agent", manifest(ollama.url, dialect="ollama")) as lent:
        await lent.until(lambda up: up["lendable"])
        async with lent.chat(**HELLO | {"model": "small"}) as got:
            assert got.status == 200
        async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
            await borrower.chat(model="small", messages=STORY, max_tokens=2)
            await asyncio.sleep(1.0)
            borrower.leave()
        await lent.until(lambda up: up["held"] == 1)
        processor = Processor(ollama)
        refused: set[str] = set()
        async with asyncio.timeout(200):
            while True:
                asked = time.monotonic()
                async with lent.chat(**HELLO | {"model": "small"}) as got:
                    if got.status == 200:
                        break
                    refused.add(got.headers["X-Vacancy-Reason"])
                processor.look()
                await asyncio.sleep(0.1)
        assert refused == {"resource_busy"}
        assert asked - processor.last <= 5.0
        (freed,) = [facts for event, facts in lent.told if event == "freed"]
        assert (freed["by"], freed["why"]) == ("proof", "its processes are quiet")
        agreement.check_empty(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)
