from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.comfyui_standin import ComfyStandin
from standins.until import until
from vacancy_agent.core.parse.comfyui import Device, PromptState, Release
from vacancy_agent.core.settings import Target
from vacancy_agent.upstreams.ask import AskError, ServerClient, open_session
from vacancy_agent.upstreams.comfyui import ComfyUi, Queue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

pytestmark = pytest.mark.component
UNKNOWN = "74419011-8bad-41c2-85f8-390f54fe5186"


@pytest.fixture(scope="module", params=["0.3.64", "0.28.1"])
def server(request: pytest.FixtureRequest) -> Iterator[ComfyStandin]:
    with ComfyStandin(request.param) as running:
        yield running


@pytest.fixture
async def comfy(server: ComfyStandin) -> AsyncIterator[ComfyUi]:
    server.behave(hang=[], device="cpu", race_s=0)
    async with open_session() as session:
        yield ComfyUi(ServerClient(session, Target("http", "127.0.0.1", server.port)))


async def test_its_release_is_asked_once(comfy: ComfyUi, server: ComfyStandin) -> None:
    before = len(server.seen("/system_stats"))
    release = await comfy.release()
    assert release == await comfy.release()
    assert release in {Release(0, 3, 64), Release(0, 28, 1)}
    assert len(server.seen("/system_stats")) == before + 1
    comfy.forget()
    assert await comfy.keeps_ids()
    assert len(server.seen("/system_stats")) == before + 2


async def test_only_a_cards_memory_is_shown(comfy: ComfyUi, server: ComfyStandin) -> None:
    assert await comfy.device_memory() == ()
    server.behave(device="cuda", torch=7 << 30)
    assert await comfy.device_memory() == (Device("cuda", 0, 7 << 30, 0),)


async def test_where_its_prompts_are(comfy: ComfyUi, server: ComfyStandin) -> None:
    assert await comfy.remaining() == 0
    assert await comfy.queue() == Queue(frozenset(), frozenset())
    done = server.submit(0.0)
    await until(lambda: server.ended(done))
    first, second = server.submit(30.0), server.submit(30.0)
    assert await comfy.remaining() == 2
    queue = await comfy.queue()
    assert queue == Queue(frozenset({first}), frozenset({second}))
    assert queue.ids == {first, second}
    assert first in queue
    assert done not in queue
    assert await comfy.foreign({first}.__contains__) == second
    assert await comfy.foreign({first, second}.__contains__) is None
    assert await comfy.state(done) is PromptState.ENDED
    assert await comfy.state(UNKNOWN) is PromptState.UNTOLD
    told = await comfy.state(first)
    assert told is (PromptState.THERE if await comfy.release() == (0, 28, 1) else PromptState.UNTOLD)
    await comfy.delete([second, UNKNOWN])
    assert await comfy.stop(first, alone=False)
    await until(lambda: server.ids() == ([], []))


async def test_deleting_what_runs_and_interrupting_what_waits_do_nothing_and_say_nothing(
    comfy: ComfyUi, server: ComfyStandin
) -> None:
    first, second = server.submit(0.6), server.submit(0.0)
    await comfy.delete([first])
    server.ask("POST", "/interrupt", {"prompt_id": second})
    assert server.ids() == ([first], [second])
    await until(lambda: server.ended(second))
    assert (server.ended(first), server.ended(second)) == ("execution_success", "execution_success")


async def test_a_server_that_is_gone_tells_nothing(server: ComfyStandin) -> None:
    async with open_session() as session:
        comfy = ComfyUi(ServerClient(session, Target("http", "127.0.0.1", 1)))
        for ask in (comfy.release, comfy.remaining, comfy.queue, comfy.free):
            with pytest.raises(AskError):
                await ask()


async def test_a_queue_above_the_bound_is_no_short_one(
    comfy: ComfyUi, server: ComfyStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vacancy_agent.upstreams.comfyui.MAX_QUEUE", 100_000)
    prompt = server.submit(30.0, prompt={"1": {"inputs": {"seconds": 30, "image": "A" * 200_000}}})
    with pytest.raises(AskError, match="MiB"):
        await comfy.queue()
    assert await comfy.foreign(lambda _: False) == prompt  # that read stops at the first
    await comfy.stop(prompt, alone=True)
    await until(lambda: server.ids() == ([], []))
