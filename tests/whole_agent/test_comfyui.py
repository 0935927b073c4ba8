"""A whole agent in front of ComfyUI: what is submitted, followed, released, and cancelled per release."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from standins.agents import Lender, lender, manifest
from standins.comfyui_standin import ComfyStandin, graph

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

pytestmark = pytest.mark.component
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


async def until(holds: Any, within: float = 10.0) -> None:
    async with asyncio.timeout(within):
        while not holds():  # noqa: ASYNC110 - the books are looked at
            await asyncio.sleep(0.02)


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
