from __future__ import annotations

import pytest

from standins.loop_clock import LoopClock
from vacancy_agent.core.facts import Instant
from vacancy_agent.upstreams.ask import AskError
from vacancy_agent.upstreams.comfyui import Queue
from vacancy_agent.upstreams.comfyui_watcher import ComfyWatcher
from vacancy_agent.upstreams.sighting import Idle, Unclear, Working

pytestmark = pytest.mark.looptime


class Comfy:
    """A server with this queue."""

    def __init__(self, queue: Queue | AskError, *, keeps: bool = True) -> None:
        self._queue = queue
        self._keeps = keeps
        self.forgotten = False

    async def remaining(self) -> int:
        return len(self._queue.ids) if isinstance(self._queue, Queue) else 1

    async def keeps_ids(self) -> bool:
        return self._keeps

    async def queue(self) -> Queue:
        if isinstance(self._queue, AskError):
            raise self._queue
        return self._queue

    def forget(self) -> None:
        self.forgotten = True


async def look(comfy: Comfy) -> object:
    return await ComfyWatcher(comfy, LoopClock()).look(Instant(5.0))  # type: ignore[arg-type]


async def test_an_empty_queue_is_idle() -> None:
    assert await look(Comfy(Queue(frozenset(), frozenset()))) == Idle(Instant(5.0), "its queue is empty")


@pytest.mark.parametrize("keeps", [True, False])
async def test_what_is_in_it_is_named(keeps: bool) -> None:
    found = await look(Comfy(Queue(frozenset({"a"}), frozenset({"b", "c"})), keeps=keeps))
    ids = frozenset({"a", "b", "c"})
    assert found == Working(Instant(5.0), "1 prompts run, 2 wait", prompts=ids, keeps_ids=keeps)


async def test_a_queue_that_cannot_be_read_shows_nothing() -> None:
    comfy = Comfy(AskError("it broke off"))
    assert await look(comfy) == Unclear("it broke off")
    assert comfy.forgotten
