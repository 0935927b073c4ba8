from __future__ import annotations

import json
from typing import Any

import pytest

from standins.clock import FakeClock
from vacancy_agent.upstreams.ask import Answer, AskError
from vacancy_agent.upstreams.ollama_lists import OllamaLists


class Server:
    """Lists these models."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.fails = False

    async def get(self, path: str, timeout: float) -> Answer:  # noqa: ASYNC109 - as the real one
        if self.fails:
            raise AskError("refused")
        rows = [{"name": name, "digest": "d", "size": 1, "size_vram": 0} for name in self.names]
        return Answer(200, json.dumps({"models": rows}).encode())


class Looks:
    def __init__(self) -> None:
        self.server, self.clock = Server(), FakeClock(start=100.0)
        client: Any = self.server
        self.lists = OllamaLists(client, self.clock)

    async def __call__(self, at: float, *names: str) -> dict[str, float]:
        """Look at this moment, when these are listed; what is gone then, by when it was listed last."""
        self.clock.advance(at - self.clock.now())
        self.server.names = list(names)
        await self.lists.residents()
        return dict(self.lists.gone)


async def test_a_model_is_gone_when_two_lists_a_second_apart_lack_it():
    look = Looks()
    assert await look(101, "m:latest") == {}
    assert await look(105) == {}
    assert look.lists.missing_of_late
    assert await look(105.9) == {}
    assert await look(106) == {"m:latest": 101}
    assert not look.lists.missing_of_late
    assert await look(500) == {"m:latest": 101}


async def test_a_model_that_comes_back_is_there():
    look = Looks()
    await look(101, "m:latest")
    await look(105)
    assert await look(106, "m:latest") == {}
    assert await look(107) == {}, "it counts anew"
    assert await look(108) == {"m:latest": 106}


async def test_what_was_never_listed_is_not_gone():
    look = Looks()
    assert await look(101) == {}
    assert await look(200, "other:latest") == {}
    assert await look(300, "other:latest") == {}


async def test_names_are_compared_in_one_spelling():
    look = Looks()
    await look(101, "Registry.ollama.ai/library/M")
    assert await look(102, "m:latest") == {}
    await look(110)
    assert await look(112) == {"m:latest": 102}


async def test_a_list_that_cannot_be_read_shows_nothing():
    look = Looks()
    await look(101, "m:latest")
    look.server.fails = True
    for at in (102, 110):
        with pytest.raises(AskError):
            await look(at)
    assert look.lists.gone == {}
    assert not look.lists.missing_of_late
