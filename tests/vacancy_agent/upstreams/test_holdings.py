from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from standins.clock import FakeClock
from vacancy_agent.core.contexts import Contexts
from vacancy_agent.core.facts import Instant, Ready
from vacancy_agent.core.settings import Dialect
from vacancy_agent.core.shown import ModelShown, ModelsShown, PoolShown, SlotsShown
from vacancy_agent.upstreams.ask import Answer, AskError, NoAnswerError
from vacancy_agent.upstreams.holdings import ComfyHoldings, LlamaHoldings, OllamaHoldings, holdings_of
from vacancy_agent.upstreams.llamacpp import (
    Asleep,
    Look,
    NoSlots,
    Router,
    Slots,
    SlotsBusy,
    SlotsIdle,
    Unreachable,
)
from vacancy_agent.upstreams.ollama_lists import OllamaLists

RECORDED = Path(__file__).resolve().parents[2] / "fixtures"


class Server:
    """Answers from a table; an answer that is an error is raised. Time passes while it does."""

    def __init__(self, clock: FakeClock, **answers: Answer | AskError) -> None:
        self.clock = clock
        self.answers = answers
        self.asked: list[str] = []

    async def get(self, path: str, timeout: float) -> Answer:  # noqa: ASYNC109 - as the real one
        return self._answer(path)

    async def post(self, path: str, json: Any, timeout: float) -> Answer:  # noqa: ASYNC109 - as the real one
        return self._answer(f"{path} {json['model']}")

    def _answer(self, path: str) -> Answer:
        self.asked.append(path)
        self.clock.advance(0.5)
        found = self.answers[path.split()[0].rpartition("/")[2]]
        if isinstance(found, AskError):
            raise found
        return found


def listed(*rows: dict[str, Any]) -> Answer:
    return Answer(200, json.dumps({"models": rows}).encode())


def ollama(**answers: Answer | AskError) -> tuple[OllamaHoldings, Server, Contexts]:
    clock, contexts = FakeClock(start=100.0), Contexts()
    server: Any = Server(clock, **answers)
    return OllamaHoldings(OllamaLists(server, clock), contexts, clock), server, contexts


ROW = {"name": "hf.co/A/B:Q4", "digest": "d", "size": 20, "size_vram": 10, "context_length": 4096}
SHOWN = Answer(200, json.dumps({"parameters": "num_ctx 1.048576e+06"}).encode())


async def test_an_ollamas_models_are_dated_by_the_question_and_named_alike():
    look, server, _ = ollama(ps=listed({**ROW, "expires_at": "2023-11-14T22:13:50.25Z"}), show=SHOWN)
    reading = await look.look()
    row = ModelShown("hf.co/a/b:q4", "d", 4096, Instant(130.25), 20, 10)
    assert reading == Ready(ModelsShown((row,)), Instant(100.0))
    assert server.asked == ["/api/ps", "/api/show hf.co/a/b:q4"]


async def test_a_time_that_cannot_be_read_is_none():
    look, _, _ = ollama(ps=listed({**ROW, "expires_at": "soon"}), show=SHOWN)
    shown = (await look.look()).value
    assert isinstance(shown, ModelsShown)
    assert shown.models[0].expires is None


async def test_a_modelfile_is_read_once_for_a_digest():
    look, server, contexts = ollama(ps=listed(ROW), show=SHOWN)
    for _ in range(2):
        shown = (await look.look()).value
    assert sum(path.startswith("/api/show") for path in server.asked) == 1
    assert isinstance(shown, ModelsShown)
    assert list(contexts.unread(shown)) == []


@pytest.mark.parametrize(
    ("answer", "asks"), [(NoAnswerError("late"), 2), (AskError("no"), 1), (Answer(404, b"{}"), 1)]
)
async def test_a_modelfile_that_cannot_be_read_costs_no_look_and_a_late_one_is_asked_for_again(
    answer: Answer | AskError, asks: int
):
    look, server, _ = ollama(ps=listed(ROW), show=answer)
    for _ in range(2):
        assert isinstance((await look.look()).value, ModelsShown)
    assert sum(path.startswith("/api/show") for path in server.asked) == asks


async def test_no_list_is_an_error():
    look, _, _ = ollama(ps=NoAnswerError("late"))
    with pytest.raises(NoAnswerError):
        await look.look()


class Slot:
    """A llama-server that shows this."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.not_before: list[float] = []

    async def look(self, not_before: Instant) -> Look:
        self.not_before.append(not_before)
        return Look(self.slots, Instant(101.5))


@pytest.mark.parametrize(
    ("slots", "idle", "held"),
    [
        (SlotsIdle(2), True, True),
        (SlotsBusy(1, 2), False, True),
        (NoSlots(), False, True),
        (Asleep(), False, False),
        (Router(), False, False),
    ],
)
async def test_a_llama_servers_slots(slots: Slots, idle: bool, held: bool):
    llama: Any = Slot(slots)
    reading = await LlamaHoldings(llama, FakeClock(start=100.0)).look()
    assert isinstance(reading.value, SlotsShown)
    assert (reading.at, reading.value.idle, reading.value.held) == (101.5, idle, held)
    assert llama.not_before == [100.0]


async def test_a_llama_server_that_says_nothing_is_an_error():
    llama: Any = Slot(Unreachable("loads its model"))
    with pytest.raises(AskError, match="loads its model"):
        await LlamaHoldings(llama, FakeClock()).look()


def stats(*devices: dict[str, Any]) -> bytes:
    return json.dumps({"system": {"comfyui_version": "0.3.64"}, "devices": devices}).encode()


CARD = {"type": "cuda", "index": 0, "torch_vram_total": 3 << 30, "torch_vram_free": 0}


@pytest.mark.parametrize(
    ("body", "held"),
    [
        (stats(CARD), 3072),
        (stats({**CARD, "type": "cpu"}), None),
        (stats({**CARD, "type": "mps"}), None),
        (stats(CARD, CARD), None),
        (stats(), None),
    ],
)
async def test_what_a_comfyuis_allocator_holds(body: bytes, held: int | None):
    server: Any = Server(FakeClock(start=100.0), system_stats=Answer(200, body))
    reading = await ComfyHoldings(server, server.clock).look()
    assert isinstance(reading.value, PoolShown)
    assert (reading.value.held, reading.at) == (held, 100.0)
    assert bool(reading.value.why) == (held is None)


@pytest.mark.parametrize("release", ["v0.28.1", "v0.3.64"])
async def test_a_recorded_comfyui_on_a_processor_holds_nothing_that_could_be_added(release: str):
    recorded = json.loads((RECORDED / "comfyui" / release / "system_stats.json").read_text())
    body = recorded["response"]["body"]
    raw = (body if isinstance(body, str) else json.dumps(body)).encode()
    server: Any = Server(FakeClock(), system_stats=Answer(200, raw))
    reading = await ComfyHoldings(server, server.clock).look()
    assert isinstance(reading.value, PoolShown)
    assert reading.value.held is None


@pytest.mark.parametrize("answer", [Answer(500, b"{}"), Answer(200, b"[]"), NoAnswerError("late")])
async def test_a_comfyui_that_cannot_be_read_is_an_error(answer: Answer | AskError):
    server: Any = Server(FakeClock(), system_stats=answer)
    with pytest.raises(AskError):
        await ComfyHoldings(server, server.clock).look()


@pytest.mark.parametrize("dialect", Dialect)
def test_which_dialects_tell_what_they_hold(dialect: Dialect):
    anything: Any = object()
    found = holdings_of(dialect, anything, anything, anything, Contexts(), FakeClock())
    assert (found is None) == (dialect in {Dialect.OPENAI, Dialect.CHATTERBOX})
