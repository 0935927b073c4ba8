from __future__ import annotations

from typing import Any

import pytest

from vacancy_agent.core.parse.comfyui import PromptState
from vacancy_agent.upstreams.comfyui import Queue
from vacancy_agent.upstreams.comfyui_ends import Asked, ended

THERE, ENDED, UNTOLD = PromptState.THERE, PromptState.ENDED, PromptState.UNTOLD


class Server:
    """Answers like a ComfyUI in whose queue these are; `asked` lists the questions."""

    def __init__(self, *queue: str, keeps: bool = True, jobs: bool = True, **states: PromptState) -> None:
        self._queue = Queue(frozenset(queue[:1]), frozenset(queue[1:]))
        self._keeps = keeps
        self._jobs = jobs
        self._states = states
        self.asked: list[str] = []

    async def remaining(self) -> int:
        return len(self._queue.ids)

    async def keeps_ids(self) -> bool:
        return self._keeps

    async def has_jobs(self) -> bool:
        return self._jobs

    async def state(self, prompt_id: str) -> PromptState:
        self.asked.append(prompt_id)
        return self._states.get(prompt_id, THERE)

    async def queue(self) -> Queue:
        self.asked.append("queue")
        return self._queue


async def gone(server: Server, *asked: str, confirmed: bool = True, due: bool = False) -> set[str]:
    prompts = [Asked(one, confirmed) for one in asked]
    found: Any = await ended(server, prompts, due=due)  # type: ignore[arg-type]
    return set(found)


async def test_an_empty_queue_ends_all_and_nothing_else_is_asked() -> None:
    server = Server()
    assert await gone(server, "a", "b", confirmed=False) == {"a", "b"}
    assert server.asked == []


async def test_while_each_is_there_the_queue_is_not_read() -> None:
    server = Server("a", "b")
    assert await gone(server, "a", "b") == set()
    assert server.asked == ["a", "b"]
    assert await gone(server, "a", "b", due=True) == set()
    assert server.asked == ["a", "b", "queue"]


@pytest.mark.parametrize("told", [ENDED, UNTOLD])
async def test_what_is_not_in_the_queue_has_ended(told: PromptState) -> None:
    assert await gone(Server("other", "a", b=told), "a", "b") == {"b"}


async def test_what_the_server_remembers_of_an_id_that_is_used_twice_ends_nothing() -> None:
    assert await gone(Server("a", a=ENDED), "a") == set()


async def test_where_silence_is_all_there_is_to_hear_the_queue_is_read_when_a_look_is_due() -> None:
    server = Server("other", jobs=False, a=UNTOLD)
    assert await gone(server, "a") == set()
    assert server.asked == ["a"]
    assert await gone(server, "a", due=True) == {"a"}
    assert await gone(Server("other", jobs=False, a=ENDED), "a") == {"a"}


async def test_an_id_that_may_not_be_the_servers_ends_nothing_by_its_absence() -> None:
    assert await gone(Server("other", keeps=False), "a", confirmed=False, due=True) == set()
    assert await gone(Server("other", keeps=False), "a", confirmed=True, due=True) == {"a"}
    assert await gone(Server("other", keeps=True), "a", confirmed=False, due=True) == {"a"}
