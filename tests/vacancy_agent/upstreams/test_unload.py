from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from vacancy_agent.upstreams.ask import Answer, AskError
from vacancy_agent.upstreams.unload import unload_ollama

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = pytest.mark.looptime
FOREVER = 1e9


class Ollama:
    """Stands for `OllamaLists`: what it lists at each look, the last one for ever; and what it was asked."""

    def __init__(self, *lists: Iterable[str] | AskError, hangs: bool = False, status: int = 200) -> None:
        self.lists = list(lists)
        self.hangs = hangs
        self.status = status
        self.posts: list[tuple[str, object]] = []
        self.open = 0
        self.client = self

    async def residents(self) -> Any:
        now = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        if isinstance(now, AskError):
            raise now
        return tuple(SimpleNamespace(name=name) for name in now)

    async def post(self, path: str, json: object, timeout: float) -> Answer:  # noqa: ASYNC109 - as the real one
        self.posts.append((path, json))
        self.open += 1
        try:
            await asyncio.sleep(FOREVER if self.hangs else 0.01)
        finally:
            self.open -= 1
        return Answer(self.status, b"{}")


class Patience:
    """Looks again after a second, as often as it was told to."""

    def __init__(self, looks: int = 100) -> None:
        self.looks = looks
        self.seen: list[str] = []

    async def __call__(self, why: str) -> bool:
        self.seen.append(why)
        await asyncio.sleep(1)
        return len(self.seen) < self.looks


async def unload(server: Ollama, patience: Patience | None = None) -> bool:
    return await unload_ollama(server, patience or Patience())  # type: ignore[arg-type]


def unloads(*models: str) -> list[tuple[str, object]]:
    return [("/api/generate", {"model": model, "keep_alive": 0}) for model in models]


async def test_every_model_that_is_there_is_asked_for_and_an_empty_list_is_the_proof() -> None:
    server = Ollama(["a:latest", "b:7b"], ["b:7b"], [])
    assert await unload(server)
    assert server.posts == unloads("a:latest", "b:7b")


async def test_where_nothing_is_resident_nothing_is_asked_for() -> None:
    server = Ollama([])
    assert await unload(server)
    assert server.posts == []


async def test_a06_a_yes_is_no_proof_and_is_not_asked_for_again() -> None:
    """ollama/ollama#7606: the answer is 200 and the model stays."""
    server, patience = Ollama(["a:latest"]), Patience(90)
    assert not await unload(server, patience)
    assert server.posts == unloads("a:latest")
    assert set(patience.seen) == {"it still lists a:latest"}


async def test_a06_a_post_that_hangs_keeps_nobody_from_looking() -> None:
    server = Ollama(["a:latest"], ["a:latest"], [], hangs=True)
    assert await unload(server)
    assert (server.posts, server.open) == (unloads("a:latest"), 0), "the request that hung was given up"


async def test_a_list_that_cannot_be_read_at_first_is_read_later_and_then_asked_for_once() -> None:
    off = AskError("refused")
    server, patience = Ollama(off, off, ["a:latest"], off, ["a:latest"], []), Patience()
    assert await unload(server, patience)
    assert server.posts == unloads("a:latest")
    assert patience.seen[0] == "whether it holds a model cannot be read: refused"


async def test_a_server_that_cannot_be_read_has_shown_nothing() -> None:
    server = Ollama(AskError("refused"))
    assert not await unload(server, Patience(5))
    assert server.posts == []


async def test_what_was_loaded_afterwards_is_not_thrown_out() -> None:
    """The owner may be using it."""
    server, patience = Ollama(["a:latest"], ["mine:latest"]), Patience(3)
    assert not await unload(server, patience)
    assert server.posts == unloads("a:latest")
    assert patience.seen[-1] == "it still lists mine:latest"


async def test_what_was_wrong_with_the_answer_is_told() -> None:
    patience = Patience(3)
    assert not await unload(Ollama(["a:latest"], status=500), patience)
    assert patience.seen[-1] == "it still lists a:latest; a:latest: answered 500 to its unload"


async def test_a_cancelled_unload_leaves_no_request_behind() -> None:
    server = Ollama(["a:latest"], hangs=True)
    task = asyncio.get_running_loop().create_task(unload(server))
    await asyncio.sleep(5)
    assert server.open == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert server.open == 0
