from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from standins.comfyui_standin import ComfyStandin
from standins.until import until
from vacancy_agent.core.settings import Target
from vacancy_agent.upstreams.ask import ServerClient, open_session
from vacancy_agent.upstreams.comfyui import ComfyUi
from vacancy_agent.upstreams.comfyui_free import Freed, NotShown, Skipped, free

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

pytestmark = pytest.mark.component
HELD = 8 << 30


@pytest.fixture(scope="module")
def server() -> Iterator[ComfyStandin]:
    with ComfyStandin() as running:
        yield running


@pytest.fixture
async def comfy(server: ComfyStandin) -> AsyncIterator[ComfyUi]:
    server.behave(hang=[], device="cuda", torch=HELD, free=True)
    async with open_session() as session:
        yield ComfyUi(ServerClient(session, Target("http", "127.0.0.1", server.port)))


class Looks:
    """Lets the unload look again so often."""

    def __init__(self, most: int) -> None:
        self.left = most
        self.said: list[str] = []

    async def __call__(self, why: str) -> bool:
        self.said.append(why)
        self.left -= 1
        await asyncio.sleep(0.02)
        return self.left >= 0


def nobodys(_prompt_id: str) -> bool:
    return False


async def test_what_drops_was_let_go(comfy: ComfyUi) -> None:
    freed = await free(comfy, nobodys, Looks(5))
    assert isinstance(freed, Freed)
    assert freed.before == HELD
    assert freed.after < HELD // 10


async def test_a_server_that_holds_nothing_shows_that(comfy: ComfyUi, server: ComfyStandin) -> None:
    server.behave(torch=0)
    assert await free(comfy, nobodys, Looks(0)) == Freed(0, 0)


async def test_its_yes_is_no_showing(comfy: ComfyUi, server: ComfyStandin) -> None:
    server.behave(free=False)
    looks, before = Looks(2), len(server.seen("/free"))
    assert await free(comfy, nobodys, looks) == NotShown("it still holds 8192 MiB")
    assert len(looks.said) == 3
    assert len(server.seen("/free")) == before + 1


async def test_the_flags_are_looked_at_when_nothing_runs(comfy: ComfyUi, server: ComfyStandin) -> None:
    prompt = server.submit(0.5)
    freed = await free(comfy, {prompt}.__contains__, Looks(500))
    assert isinstance(freed, Freed)
    assert server.ended(prompt) == "execution_success"


async def test_somebody_elses_prompt_means_that_the_server_is_in_use(
    comfy: ComfyUi, server: ComfyStandin
) -> None:
    before = len(server.seen("/free"))
    prompt = server.submit(0.5)
    assert await free(comfy, nobodys, Looks(0)) == Skipped(
        f"prompt {prompt} in its queue is not a borrower's"
    )
    assert len(server.seen("/free")) == before
    assert isinstance(await free(comfy, nobodys, Looks(500), unconfirmed=True), Freed)
    await until(lambda: server.ids() == ([], []))


async def test_a_queue_that_cannot_be_read_keeps_nobody_from_asking(
    comfy: ComfyUi, server: ComfyStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vacancy_agent.upstreams.ask.DEADLINE_S", 0.2)
    server.behave(hang=["/queue"])
    assert isinstance(await free(comfy, nobodys, Looks(5)), Freed)


async def test_a_device_without_a_figure_of_its_own_is_never_believed(
    comfy: ComfyUi, server: ComfyStandin
) -> None:
    server.behave(device="cpu")
    assert await free(comfy, nobodys, Looks(1)) == NotShown("it does not show its memory")


async def test_a_server_that_is_gone_is_said_so() -> None:
    async with open_session() as session:
        comfy = ComfyUi(ServerClient(session, Target("http", "127.0.0.1", 1)))
        found = await free(comfy, nobodys, Looks(1))
    assert isinstance(found, NotShown)
    assert "cannot be asked to unload" in found.why
