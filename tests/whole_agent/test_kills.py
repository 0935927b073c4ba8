"""`kill -9` of the agent at every point of a request's path that can be reached from outside, and a restart.

No job is lost, which would put new work beside old; and none is held for ever. The servers are real processes
of their own, which go on when the agent is gone.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from standins.agents import manifest
from standins.http_text import request
from standins.killable import ENDLESS, FOR_EVER, INTERRUPTED, Machine
from standins.until import until
from vacancy_agent.store.journal_format import HEADER_SIZE, SLOT_SIZE

if TYPE_CHECKING:
    from pathlib import Path

    from lab.llama_lab import LlamaLab
    from standins.openai_server import OpenAiStandin

pytestmark = pytest.mark.component


async def killed_while_a_body_comes(machine: Machine, standin: OpenAiStandin) -> None:
    async with await machine.borrower() as borrower:
        await borrower.send(request(body={"model": "m"}, token=machine.agent.tokens["borrow"])[:-4])
        machine.kill()
        assert await borrower.end() in {"fin", "reset"}
    machine.start()
    assert machine.holds() == []
    assert standin.seen() == []


async def killed_before_the_head(machine: Machine, standin: OpenAiStandin) -> None:
    async with await machine.borrower() as borrower:
        await borrower.chat(stream=True, standin=ENDLESS | {"head_delay_s": 30})
        await until(standin.seen)
        machine.kill()
        assert await borrower.end() in {"fin", "reset"}
        assert borrower.got == b"", "nobody is given half an answer"
    machine.start()
    (hold,) = machine.holds()
    assert (hold["why"], hold["borrower"], hold["model"]) == (INTERRUPTED, "borrow", "m")
    await machine.comes_free(standin)


async def killed_when_its_borrower_had_left(machine: Machine, standin: OpenAiStandin) -> None:
    async with await machine.borrower() as borrower:
        await borrower.chat(stream=True, standin=ENDLESS)
        await borrower.until(b"w1 ")
        borrower.leave()
    await until(machine.holds)
    (hold,) = machine.holds()
    assert hold["why"] == "the borrower left before the reply was complete"
    machine.kill()
    machine.start()
    assert [one["id"] for one in machine.holds()] == [hold["id"]]
    await machine.comes_free(standin)


async def killed_in_the_midst_of_a_stream(machine: Machine, standin: OpenAiStandin) -> None:
    async with await machine.borrower() as borrower:
        await borrower.chat(stream=True, standin=ENDLESS)
        await borrower.until(b"w2 ")
        machine.kill()
        await borrower.end()
        assert b"[DONE]" not in borrower.got
    machine.start()
    assert [hold["why"] for hold in machine.holds()] == [INTERRUPTED]
    await machine.comes_free(standin)


async def killed_after_a_reply(machine: Machine, standin: OpenAiStandin) -> None:
    assert await machine.refusal() == ""
    await until(lambda: machine.agent.status()["agent"]["upstreams"][0]["active"] == 0)
    machine.kill()
    machine.start()
    assert machine.holds() == []
    assert await machine.refusal() == ""


async def test_at_each_point_of_a_request(standin: OpenAiStandin, tmp_path: Path) -> None:
    with Machine(tmp_path / "agent", manifest(standin.url)) as machine:
        for killed in (
            killed_while_a_body_comes,
            killed_before_the_head,
            killed_when_its_borrower_had_left,
            killed_in_the_midst_of_a_stream,
            killed_after_a_reply,
        ):
            await killed(machine, standin)
            standin.forget()


async def test_a_hold_is_listed_and_freed_from_the_command_line_once_and_for_all(
    standin: OpenAiStandin, tmp_path: Path
) -> None:
    with Machine(tmp_path / "agent", manifest(standin.url)) as machine:
        where = ["--api", machine.agent.api_url, "--state-dir", str(machine.agent.state)]

        def holds(*more: str) -> str:
            command = [sys.executable, "-m", "vacancy_agent.cli", "holds", *where, *more]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        assert await asyncio.to_thread(holds) == "Nothing is held.\n"
        async with await machine.borrower() as borrower:
            await borrower.chat(stream=True, standin=ENDLESS)
            await borrower.until(b"w1 ")
        await until(machine.holds)
        (hold,) = machine.holds()
        told = await asyncio.to_thread(holds)
        assert "the borrower left before the reply was complete" in told
        assert hold["id"] in told
        assert await asyncio.to_thread(holds, "--release", hold["id"]) == f"Released {hold['id']}.\n"
        machine.kill()
        machine.start()
        assert machine.holds() == []
        assert await machine.refusal() == ""


async def test_a_damaged_entry_holds_its_upstream_and_comes_free_too(
    standin: OpenAiStandin, tmp_path: Path
) -> None:
    with Machine(tmp_path / "agent", manifest(standin.url)) as machine:
        machine.kill()
        journal = machine.agent.state / "holds" / "up.holds"
        content = bytearray(journal.read_bytes())
        content[HEADER_SIZE + 2 * SLOT_SIZE + 40] ^= 0x10
        journal.write_bytes(content)
        machine.start()
        (hold,) = machine.holds()
        assert (hold["borrower"], hold["why"]) == ("unknown", "its entry in the hold journal is damaged")
        machine.kill()
        machine.start()
        assert len(machine.holds()) == 1, "a second restart does not lose it"
        assert await machine.refusal() == "resource_busy"
        await until(lambda: not machine.holds(), within=30)
        assert await machine.refusal() == ""


async def test_at_random_moments_of_many_requests(standin: OpenAiStandin, tmp_path: Path) -> None:
    """What the server still works on is held, each time; and in the end every slot is back."""
    slots = 4
    rng = random.Random(6)  # noqa: S311 - no secret

    async def borrow_for_ever(machine: Machine) -> None:
        while True:
            async with await machine.borrower() as borrower:
                words = FOR_EVER | {"chunks": rng.randrange(1, 30), "every_s": 0.01}
                await borrower.chat(stream=rng.random() < 0.7, standin=words)
                await (asyncio.sleep(rng.random() * 0.2) if rng.random() < 0.2 else borrower.end())

    most = 0
    with Machine(tmp_path / "agent", manifest(standin.url, slots=slots)) as machine:
        for _ in range(2):
            loop = asyncio.get_running_loop()
            borrowers = [loop.create_task(borrow_for_ever(machine)) for _ in range(6)]
            await asyncio.sleep(0.2 + rng.random() * 0.4)
            machine.kill()
            for borrower in borrowers:
                borrower.cancel()
            await asyncio.gather(*borrowers, return_exceptions=True)
            await until(lambda: all(one["ended"] for one in standin.seen()))
            machine.start()
            running, held = standin.report()["running"], len(machine.holds())
            assert running <= held <= slots
            most = max(most, running)
            standin.let_go()
            await until(lambda: not machine.holds(), within=30)
            asked = [machine.refusal() for _ in range(slots)]
            assert await asyncio.gather(*asked) == [""] * slots
    assert most > 0, "else nothing was shown"


@pytest.mark.llama
@pytest.mark.parametrize("stream", [True, False], ids=["in its stream", "in its prompt"])
async def test_a_real_server_proves_the_end(slow_llama: LlamaLab, tmp_path: Path, stream: bool) -> None:
    """After a kill in the midst of a prompt the server works on for seconds, beside which nothing may run."""
    story = [{"role": "user", "content": f"{stream} There was an idle machine. " * (1 if stream else 30)}]
    with Machine(tmp_path / "agent", manifest(slow_llama.url, dialect="llamacpp")) as machine:
        async with await machine.borrower() as borrower:
            await borrower.chat(stream=stream, messages=story, max_tokens=4000, ignore_eos=True)
            await (borrower.until(b"delta") if stream else asyncio.sleep(0.5))
            machine.kill()
            await borrower.end()
        machine.start()
        (hold,) = machine.holds()
        assert hold["why"] == INTERRUPTED
        assert await machine.refusal() == "resource_busy"
        await until(lambda: not machine.holds(), within=60)
        assert "by=proof" in machine.agent.text
        assert slow_llama.busy() == 0
        async with await machine.borrower() as borrower:
            await borrower.chat(messages=[{"role": "user", "content": "hello"}], max_tokens=2)
            assert (await borrower.answer()).status == 200
