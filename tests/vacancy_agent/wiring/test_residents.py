from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from standins.clock import FakeClock
from standins.hosts import host, upstream
from standins.until import until
from vacancy_agent.core.board import Board
from vacancy_agent.core.contexts import Kind
from vacancy_agent.core.facts import Instant, MiB, Ready, Seconds
from vacancy_agent.core.ledger import Ledger
from vacancy_agent.core.priors import PriorKey
from vacancy_agent.core.settings import Dialect, SamplingSettings
from vacancy_agent.core.shown import ModelsShown
from vacancy_agent.upstreams.ask import Answer
from vacancy_agent.upstreams.llamacpp import LlamaCpp
from vacancy_agent.upstreams.ollama_lists import OllamaLists
from vacancy_agent.wiring.residents import Residents
from vacancy_dialects import RunnerAsk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LEARNED = [(Kind("old", False, None), 4096)]
UPSTREAMS = (upstream("ollama", dialect=Dialect.OLLAMA), upstream("vllm", dialect=Dialect.OPENAI))


class Client:
    """An Ollama that lists one model."""

    digest = "d"

    async def get(self, path: str, timeout: float) -> Answer:  # noqa: ASYNC109 - as the real one
        row = {"name": "m", "digest": self.digest, "size": 1, "size_vram": 1, "context_length": 4096}
        return Answer(200, json.dumps({"models": [row]}).encode())

    async def post(self, path: str, json: object, timeout: float) -> Answer:  # noqa: ASYNC109 - as above
        return Answer(200, b"{}")


class Rig:
    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.group = group
        self.clock = FakeClock(start=100.0)
        self.settings = host(UPSTREAMS)
        self.board = Board(self.settings)
        self.host: Any = SimpleNamespace(
            board=self.board,
            ledger=Ledger(self.settings, self.board),
            clock=self.clock,
            models={},
            tell=lambda *_, **__: None,
        )
        self.kept: list[list[tuple[Kind, int]]] = []
        store: Any = SimpleNamespace(
            contexts=LEARNED, keep_contexts=lambda items: self.kept.append(list(items))
        )
        self.holds: Any = SimpleNamespace(clients={}, llamas={}, lists={})
        self.changes = 0
        self.residents = Residents(self.host, self.holds, store, self._changed)
        self.serve("ollama")
        self.serve("vllm")

    def serve(self, name: str) -> Any:
        client: Any = Client()
        self.holds.clients[name] = client
        self.holds.llamas[name] = LlamaCpp(client, self.clock)
        self.holds.lists[name] = OllamaLists(client, self.clock)
        return client

    def follow(self, upstreams: Any = UPSTREAMS, interval: float = 3) -> None:
        self.settings = host(upstreams, sampling=SamplingSettings(interval=Seconds(interval)))
        self.board.reconfigure(self.settings)
        self.host.ledger.reconfigure(self.settings)
        self.residents.follow(self.group, self.settings)

    async def look(self) -> None:
        self.clock.advance(1)
        await self.host.models["ollama"].watched.fresh(Seconds(5))

    def _changed(self) -> None:
        self.changes += 1


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with asyncio.TaskGroup() as group:
        rig = Rig(group)
        yield rig
        rig.residents.stop()


async def test_only_upstreams_that_tell_what_they_hold_are_observed(rig: Rig):
    rig.follow()
    assert set(rig.host.models) == {"ollama"}
    await until(lambda: rig.changes)
    reading = rig.board.residency["ollama"]
    assert isinstance(reading, Ready)
    assert isinstance(reading.value, ModelsShown)
    assert (reading.at, reading.value.models[0].name) == (100.0, "m:latest")


async def test_what_was_learned_before_is_known_and_what_is_learned_is_kept_once(rig: Rig):
    rig.follow()
    assert list(rig.board.contexts.items()) == LEARNED
    await rig.look()
    assert rig.kept == []
    runner = RunnerAsk(v1=True)
    rig.board.contexts.began("ollama", "m:latest", runner)
    rig.board.contexts.ended("ollama", "m:latest", runner, Instant(101.5), served=True)
    for _ in range(3):
        await rig.look()
    assert rig.kept == [[*LEARNED, (Kind("d", True, None), 4096)]]


async def test_a_measured_footprint_belongs_to_the_digest(rig: Rig):
    rig.follow()
    await rig.look()
    key = PriorKey("ollama", "m:latest")
    rig.board.priors.load([(key, {"gpu": MiB(7)})])
    await rig.look()
    assert rig.board.priors.of(key) is not None
    rig.holds.clients["ollama"].digest = "another"
    await rig.look()
    assert rig.board.priors.of(key) is None


async def test_another_interval_keeps_what_the_listeners_proxy_has(rig: Rig):
    rig.follow()
    models = rig.host.models["ollama"]
    watched = models.watched
    rig.follow()
    assert models.watched is watched
    rig.follow(interval=5)
    assert rig.host.models["ollama"] is models
    assert models.watched is not watched
    await rig.look()


async def test_another_server_starts_anew_and_one_that_is_gone_is_forgotten(rig: Rig):
    rig.follow()
    models = rig.host.models["ollama"]
    rig.serve("ollama")
    rig.follow()
    assert rig.host.models["ollama"] is not models
    del rig.holds.clients["ollama"]
    rig.follow(UPSTREAMS[1:])
    assert rig.host.models == {}


async def test_a_server_that_is_spoken_to_in_another_dialect_lists_nothing_any_more(rig: Rig):
    rig.follow()
    await until(lambda: rig.changes)
    rig.follow([upstream("ollama", dialect=Dialect.OPENAI)])
    assert rig.host.models == {}
    rig.clock.advance(60)
    await asyncio.sleep(0.05)
    assert rig.board.residency == {}
    rig.follow()
    assert set(rig.host.models) == {"ollama"}
    await until(lambda: rig.board.residency)
