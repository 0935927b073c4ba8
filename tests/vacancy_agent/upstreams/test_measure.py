"""A measurement leaves the server empty, and refuses a figure that is not the model's alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from standins.ollama_server import OllamaStandin
from vacancy_agent.clock import SystemClock
from vacancy_agent.core.settings import Target
from vacancy_agent.upstreams import measure as module
from vacancy_agent.upstreams.ask import ServerClient, open_session
from vacancy_agent.upstreams.measure import Measure, MeasureError, NoSuchModelError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from lab.ollama_lab import OllamaLab

pytestmark = pytest.mark.component
MIB = 1 << 20


@pytest.fixture
def server() -> Iterator[OllamaStandin]:
    with OllamaStandin() as one:
        yield one


@pytest_asyncio.fixture
async def measure(server: OllamaStandin) -> AsyncIterator[Measure]:
    async with open_session() as session:
        client = ServerClient(session, Target("http", "127.0.0.1", server.port))
        yield Measure(client, SystemClock(), lambda _: None)


async def loaded_beside(server: OllamaStandin, model: str) -> None:
    async with open_session() as session:
        client = ServerClient(session, Target("http", "127.0.0.1", server.port))
        await client.post("/api/generate", {"model": model, "prompt": "hi", "stream": False})


async def test_a_model_is_read_by_its_canonical_name_and_gone_afterwards(
    server: OllamaStandin, measure: Measure
):
    found = await measure.measure("Registry.ollama.ai/library/SMALL", 8192, 10)
    assert (found.model, found.context_length) == ("small:latest", 8192)
    assert found.size == found.size_vram == (8192 + 32) * MIB
    assert await measure.loaded() == []
    assert server.report()["loads"] == ["small:latest 8192"]


async def test_without_a_context_the_models_own_is_measured(measure: Measure):
    assert (await measure.measure("wide", None, 10)).context_length == 1 << 20


async def test_what_the_server_holds_is_unloaded_first(server: OllamaStandin, measure: Measure):
    await loaded_beside(server, "tiny")
    await loaded_beside(server, "small")
    assert sorted(await measure.loaded()) == ["small:latest", "tiny:latest"]
    await measure.unload()
    assert await measure.loaded() == []


async def test_a_model_that_stays_is_an_error(
    server: OllamaStandin, measure: Measure, monkeypatch: pytest.MonkeyPatch
):
    await loaded_beside(server, "tiny")
    server.behave(unload="stays")
    monkeypatch.setattr(module, "UNLOADED_WITHIN_S", 1.0)
    with pytest.raises(MeasureError, match=r"did not let go within 1 s: it still lists tiny:latest"):
        await measure.unload()


async def test_a_figure_taken_beside_another_model_is_no_figure(server: OllamaStandin, measure: Measure):
    server.behave(load_s=0.5)
    async with asyncio.TaskGroup() as group:
        group.create_task(loaded_beside(server, "tiny"))
        await asyncio.sleep(0.1)
        with pytest.raises(MeasureError, match=r"tiny:latest was loaded beside it: pause lending"):
            await measure.measure("small", None, 10)
    assert await measure.loaded() == ["tiny:latest"]  # what is not ours stays


async def test_a_model_that_is_not_there(measure: Measure):
    with pytest.raises(NoSuchModelError, match="`ollama pull nothing` gets it"):
        await measure.measure("nothing", None, 10)


async def test_a_load_that_takes_too_long_is_given_up_and_told_meanwhile(
    server: OllamaStandin, monkeypatch: pytest.MonkeyPatch
):
    server.behave(load_s=5)
    monkeypatch.setattr(module, "TELL_S", 0.2)
    said: list[str] = []
    async with open_session() as session:
        client = ServerClient(session, Target("http", "127.0.0.1", server.port))
        with pytest.raises(MeasureError, match=r"not loaded: no answer to POST /api/generate within 1 s"):
            await Measure(client, SystemClock(), said.append).measure("small", None, 1)
    assert "loading, for 0 s" in said


@pytest.mark.parametrize(("how", "why"), [("broken", "no JSON"), ("hangs", "no answer to GET /api/ps")])
async def test_a_list_that_cannot_be_read(server: OllamaStandin, measure: Measure, how: str, why: str):
    server.behave(ps=how)
    with pytest.raises(MeasureError, match=f"what the server holds cannot be read: .*{why}"):
        await measure.loaded()


async def test_real_ollama(ollama: OllamaLab):
    async with open_session() as session:
        client = ServerClient(session, Target("http", "127.0.0.1", ollama.port))
        measure = Measure(client, SystemClock(), lambda _: None)
        small, large = [await measure.measure("tiny", context, 120) for context in (2048, 16384)]
        assert await measure.loaded() == []
    assert (small.model, small.context_length, large.context_length) == ("tiny:latest", 2048, 16384)
    assert 0 < small.size < large.size
    assert small.size_vram == 0
