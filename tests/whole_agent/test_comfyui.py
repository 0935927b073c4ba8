"""A whole agent in front of ComfyUI: what is submitted, followed, released, and cancelled per release."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from standins.agents import Lender, lender, manifest
from standins.borrowers import Borrower
from standins.comfyui_standin import ComfyStandin, graph
from standins.killable import INTERRUPTED, Machine
from standins.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

pytestmark = pytest.mark.component
JSON = {"Content-Type": "application/json"}
RELEASES = ["0.3.40", "0.3.50", "0.3.64", "0.25.1", "0.28.1"]


@pytest.fixture
def comfy(request: pytest.FixtureRequest) -> Iterator[ComfyStandin]:
    with ComfyStandin(getattr(request, "param", "0.28.1")) as server:
        yield server


@asynccontextmanager
async def lending(comfy: ComfyStandin, folder: Path, **more: Any) -> AsyncIterator[Lender]:
    upstream = {"dialect": "comfyui", "slots": 3, "yieldOnVeto": False} | more
    async with lender(folder, manifest(comfy.url, **upstream)) as lent:
        await lent.until(lambda up: up["lendable"])
        yield lent


async def submit(lent: Lender, seconds: float, **more: Any) -> str:
    async with lent.ask("POST", "/prompt", json={"prompt": graph(seconds)} | more) as answer:
        said = await answer.json(content_type=None)
        assert answer.status == 200, said
        prompt_id: str = said["prompt_id"]
        return prompt_id


def idle(lent: Lender) -> bool:
    return not list(lent.agent.host.ledger.jobs())


def phases(lent: Lender) -> list[str]:
    return [job.phase.value for job in lent.agent.host.ledger.jobs()]


@pytest.mark.parametrize("comfy", RELEASES, indirect=True)
async def test_a_prompt_is_followed_until_the_server_shows_its_end(
    comfy: ComfyStandin, tmp_path: Path
) -> None:
    async with lending(comfy, tmp_path) as lent:
        prompt_id = await submit(lent, 1.0)
        (job,) = lent.agent.host.ledger.jobs()
        assert job.phase == "tracking"
        assert comfy.ids() == ([prompt_id], [])
        await until(lambda: idle(lent))
        assert comfy.ended(prompt_id) == "execution_success"
        async with lent.ask("GET", f"/history/{prompt_id}") as answer:
            assert prompt_id in await answer.json(content_type=None)


@pytest.mark.parametrize("comfy", RELEASES, indirect=True)
async def test_an_owners_return_cancels_what_waits_and_what_runs_and_nobody_elses(
    comfy: ComfyStandin, tmp_path: Path
) -> None:
    async with lending(comfy, tmp_path) as lent:
        running = await submit(lent, 30.0)
        waiting = await submit(lent, 30.0)
        await lent.agent.pause(None)
        await until(lambda: idle(lent))
        assert comfy.ids() == ([], [])
        assert comfy.ended(running) == "execution_interrupted"
        assert comfy.ended(waiting) is None
        changed = [entry for entry in comfy.seen("/queue", "/interrupt") if entry["method"] == "POST"]
        named = json.dumps([entry["body"] for entry in changed])
        assert waiting in named


async def test_nobody_elses_prompt_is_touched(comfy: ComfyStandin, tmp_path: Path) -> None:
    async with lending(comfy, tmp_path) as lent:
        ours = await submit(lent, 30.0)
        theirs = comfy.submit(0.5)
        later = await submit(lent, 30.0)
        await lent.agent.pause(None)
        await until(lambda: idle(lent))
        await asyncio.to_thread(comfy.until, lambda: comfy.ended(theirs))
        assert comfy.ended(theirs) == "execution_success"
        assert comfy.ended(ours) == "execution_interrupted"
        assert comfy.ended(later) is None


@pytest.mark.parametrize("comfy", ["0.3.64", "0.28.1"], indirect=True)
async def test_a_submission_that_is_under_way_when_the_owner_returns_is_cancelled_once_it_lands(
    comfy: ComfyStandin, tmp_path: Path
) -> None:
    async with lending(comfy, tmp_path, onOwnerReturn="cancel") as lent:
        comfy.behave(enqueue_s=1.0)
        asked = asyncio.get_running_loop().create_task(_status(lent, graph(30.0)))
        await until(lambda: comfy.seen("/prompt"))
        await lent.agent.pause(None)
        assert await asked == 503, "the borrower learns at once that there is no room"
        assert phases(lent) == ["held"]
        assert comfy.ids() == ([], [])
        await until(lambda: comfy.ids() != ([], []))
        await until(lambda: comfy.ids() == ([], []))
        await until(lambda: idle(lent), within=20)


async def _status(lent: Lender, prompt: Any) -> int:
    async with lent.ask("POST", "/prompt", json={"prompt": prompt}) as answer:
        return int(answer.status)


async def test_a_client_that_leaves_ends_no_prompt(comfy: ComfyStandin, tmp_path: Path) -> None:
    async with lending(comfy, tmp_path) as lent:
        comfy.behave(reply_s=1.0)
        borrower = await Borrower.at(lent.port, lent.tokens.borrow)
        await borrower.ask({"prompt": graph(4.0)}, path="/prompt")
        await until(lambda: comfy.ids()[0])
        (prompt,) = comfy.ids()[0]
        borrower.leave()
        await until(lambda: phases(lent) == ["held"])
        theirs = comfy.submit(30.0)
        await asyncio.sleep(1.0)
        assert phases(lent) == ["held"]
        await until(lambda: idle(lent), within=20)
        assert comfy.ended(prompt) == "execution_success"
        assert comfy.ids() == ([theirs], []), "it was freed although the server is at work for somebody else"


async def test_an_id_that_was_used_is_exchanged_also_in_a_large_body(
    comfy: ComfyStandin, tmp_path: Path
) -> None:
    own = "e186e2ca-b3f5-4bda-be65-4619f2694c33"
    async with lending(comfy, tmp_path) as lent:
        assert await submit(lent, 0.0, prompt_id=own) == own
        big = {"prompt": graph(image="A" * (5 << 20)), "prompt_id": own, "front": True, "number": -1}
        async with lent.ask(
            "POST", "/prompt", data=io.BytesIO(json.dumps(big).encode()), headers=JSON
        ) as answer:
            second = (await answer.json(content_type=None))["prompt_id"]
        assert second != own
        await until(lambda: comfy.ended(second))
        (entry,) = comfy.ask("GET", f"/history/{second}").values()
        assert entry["prompt"][0] == 2, "it did not jump the queue"
        assert len(entry["prompt"][2]["1"]["inputs"]["image"]) == 5 << 20


@pytest.mark.parametrize("comfy", ["0.3.64", "0.28.1"], indirect=True)
async def test_the_history_of_an_id_does_not_end_its_second_prompt(
    comfy: ComfyStandin, tmp_path: Path
) -> None:
    own = "e186e2ca-b3f5-4bda-be65-4619f2694c33"
    assert comfy.submit(0.0, prompt_id=own) == own
    await until(lambda: comfy.ended(own))
    async with lending(comfy, tmp_path) as lent:  # which has not seen the first
        assert await submit(lent, 3.0, prompt_id=own) == own
        await asyncio.sleep(2.0)
        assert phases(lent) == ["tracking"]
        await until(lambda: idle(lent))
        assert comfy.ids() == ([], [])


async def test_a_refused_graph_is_over(comfy: ComfyStandin, tmp_path: Path) -> None:
    async with lending(comfy, tmp_path) as lent:
        assert await _status(lent, {"1": {"class_type": "Nope", "inputs": {}}}) == 400
        assert idle(lent)


async def test_where_a_browser_stands_is_kept_from_the_server(comfy: ComfyStandin, tmp_path: Path) -> None:
    page = {"Origin": "http://elsewhere:8471", "Sec-Fetch-Site": "cross-site"}
    async with lending(comfy, tmp_path) as lent:
        async with lent.http.get(comfy.url + "/prompt", headers=page) as answer:
            assert answer.status == 403
        async with lent.ask("GET", "/prompt", headers=page) as answer:
            assert answer.status == 200


async def test_an_upload_ends_with_its_reply(comfy: ComfyStandin, tmp_path: Path) -> None:
    async with lending(comfy, tmp_path) as lent:
        form = aiohttp.FormData({"overwrite": "1"})
        form.add_field("image", b"png", filename="a.png", content_type="image/png")
        async with lent.ask("POST", "/upload/image", data=form) as answer:
            assert (await answer.json())["name"] == "a.png"
        assert idle(lent)


async def test_a_borrower_reaches_nothing_of_the_owners(comfy: ComfyStandin, tmp_path: Path) -> None:
    async with lending(comfy, tmp_path) as lent:
        before = len(comfy.seen("/queue", "/interrupt", "/free", "/api/jobs/x/cancel"))
        for method, path in [
            ("GET", "/queue"), ("POST", "/api/queue"), ("POST", "/interrupt"), ("POST", "/free"),
            ("GET", "/system_stats"), ("GET", "/%71ueue"), ("POST", "/api/jobs/x/cancel"),
        ]:  # fmt: skip
            async with lent.ask(method, path) as answer:
                assert answer.status == 403, path
        assert len(comfy.seen("/queue", "/interrupt", "/free", "/api/jobs/x/cancel")) == before


@pytest.mark.parametrize("comfy", ["0.3.64", "0.28.1"], indirect=True)
async def test_the_interrupt_that_hits_the_next_prompt(comfy: ComfyStandin, tmp_path: Path) -> None:
    """Up to 0.25 nothing can be done about it; from 0.26 on it is never sent."""
    comfy.behave(race_s=0.5)
    first, theirs = comfy.submit(0.3), comfy.submit(0.6)
    comfy.ask("POST", "/interrupt", {"prompt_id": first})
    await until(lambda: comfy.ended(theirs))
    assert (comfy.ended(first), comfy.ended(theirs)) == ("execution_success", "execution_interrupted")
    async with lending(comfy, tmp_path) as lent:
        sent = len(comfy.seen("/interrupt"))
        await submit(lent, 30.0)
        await lent.agent.pause(None)
        await until(lambda: idle(lent))
        assert (len(comfy.seen("/interrupt")) > sent) == (comfy.release == "0.3.64")


async def test_after_a_kill_the_prompt_is_the_proof(comfy: ComfyStandin, tmp_path: Path) -> None:
    document = manifest(comfy.url, dialect="comfyui", slots=2, yieldOnVeto=False)
    with Machine(tmp_path, document) as machine:
        async with await machine.borrower() as borrower:
            await borrower.ask({"prompt": graph(6.0)}, path="/prompt")
            assert (await borrower.answer()).status == 200
        (prompt,) = comfy.ids()[0]
        # It is noted in the turn of the loop that also sends the answer, a moment after it.
        await until(lambda: [record.confirmed for record in machine.written()] == [True])
        machine.kill()
        (record,) = machine.written()
        assert (record.prompt, record.confirmed) == (prompt, True)
        theirs = await asyncio.to_thread(comfy.submit, 30.0)
        machine.start()
        (hold,) = machine.holds()
        assert hold["why"] == INTERRUPTED
        await until(lambda: not machine.holds(), within=30)
        assert comfy.ended(prompt) == "execution_success"
        assert comfy.ids() == ([theirs], [])
        assert "its prompt is not in the queue" in machine.agent.text


async def test_an_unload_waits_for_nothing_and_is_believed_when_it_is_shown(
    comfy: ComfyStandin, tmp_path: Path
) -> None:
    comfy.behave(device="cuda")
    async with lending(comfy, tmp_path, yieldOnVeto=True) as lent:
        await submit(lent, 30.0)
        await lent.agent.pause(None)
        await until(lambda: idle(lent) and comfy.ask("GET", "/_standin/seen")["torch"] < 1 << 30)
        await until(lambda: [facts for event, facts in lent.told if event == "reclaimed"])
        assert [facts["reason"] for event, facts in lent.told if event == "reclaimed"] == ["Reclaimed"]


async def test_no_unload_beside_the_owners_own_prompt(comfy: ComfyStandin, tmp_path: Path) -> None:
    comfy.behave(device="cuda")
    async with lending(comfy, tmp_path, yieldOnVeto=True) as lent:
        theirs = comfy.submit(3.0)
        await lent.agent.pause(None)
        await until(lambda: comfy.ended(theirs))
        assert comfy.seen("/free") == []
        assert comfy.ended(theirs) == "execution_success"


async def test_drained_work_that_ends_in_time_is_spared_and_the_rest_is_cancelled_at_the_deadline(
    comfy: ComfyStandin, tmp_path: Path
) -> None:
    async with lending(comfy, tmp_path, onOwnerReturn="drain", drainTimeout="3s") as lent:
        short, long = await submit(lent, 1.0), await submit(lent, 30.0)
        await lent.agent.pause(None)
        async with lent.ask("POST", "/prompt", json={"prompt": graph()}) as answer:
            assert answer.headers["x-vacancy-reason"] == "lending_disabled"
        await until(lambda: comfy.ended(short))
        assert comfy.seen("/queue", "/interrupt", f"/api/jobs/{long}/cancel") == [
            entry for entry in comfy.seen("/queue") if entry["method"] == "GET"
        ], "nothing is cancelled before the deadline"
        await until(lambda: idle(lent))
        assert (comfy.ended(short), comfy.ended(long)) == ("execution_success", "execution_interrupted")


async def test_finish_never_cancels(comfy: ComfyStandin, tmp_path: Path) -> None:
    async with lending(comfy, tmp_path, onOwnerReturn="finish", yieldOnVeto=True) as lent:
        comfy.behave(device="cuda")
        prompts = [await submit(lent, 1.5), await submit(lent, 1.5)]
        await lent.agent.pause(None)
        await until(lambda: idle(lent))
        assert [comfy.ended(one) for one in prompts] == ["execution_success"] * 2
        await until(lambda: comfy.seen("/free"))
