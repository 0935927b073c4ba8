from __future__ import annotations

from types import SimpleNamespace

import pytest

from standins.loop_clock import LoopClock
from vacancy_agent.core.facts import Instant
from vacancy_agent.core.settings import Dialect
from vacancy_agent.upstreams import llamacpp
from vacancy_agent.upstreams.ask import Answer, AskError
from vacancy_agent.upstreams.chatterbox import ChatterboxWatcher
from vacancy_agent.upstreams.comfyui_watcher import ComfyWatcher
from vacancy_agent.upstreams.llamacpp import Look
from vacancy_agent.upstreams.sighting import Idle, Unclear, Working
from vacancy_agent.upstreams.watchers import LlamaWatcher, OllamaWatcher, OpenAiWatcher, watcher_for

AT = Instant(7.0)
QUIET = Idle(Instant(9.0), "its processes are quiet")


class Llama:
    def __init__(self, slots: llamacpp.Slots) -> None:
        self.slots = slots

    async def look(self, not_before: Instant) -> Look:
        return Look(self.slots, AT)


class Local:
    async def look(self, not_before: Instant) -> Idle:
        return QUIET


class Server:
    def __init__(self, answer: Answer | AskError) -> None:
        self.answer = answer

    async def get(self, path: str) -> Answer:
        if isinstance(self.answer, AskError):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        (llamacpp.SlotsIdle(2), Idle(AT, "its slots are idle")),
        (llamacpp.Asleep(), Idle(AT, "it sleeps")),
        (llamacpp.SlotsBusy(1, 2), Working(AT, "1 of 2 slots work")),
        (llamacpp.Unreachable("loads its model"), Unclear("loads its model")),
        (llamacpp.NoSlots(), QUIET),
        (llamacpp.Router(), QUIET),
    ],
)
async def test_llama(slots: llamacpp.Slots, expected: object):
    assert await LlamaWatcher(Llama(slots), Local()).look(Instant(0.0)) == expected  # type: ignore[arg-type]


def metrics(running: int) -> Answer:
    return Answer(200, f"vllm:num_requests_running {running}\nvllm:num_requests_waiting 0\n".encode())


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (metrics(0), Idle(Instant(5.0), "its metrics show no request")),
        (metrics(2), Working(Instant(5.0), "2 requests run, 0 wait")),
        (Answer(404, b""), QUIET),
        (AskError("refused"), Unclear("refused")),
    ],
)
async def test_openai_looks_no_sooner_than_asked(answer: Answer | AskError, expected: object):
    watcher = OpenAiWatcher(Server(answer), Local(), LoopClock())  # type: ignore[arg-type]
    assert await watcher.look(Instant(5.0)) == expected


class Lists:
    """Stands for `OllamaLists`: each look is a list of names, or an error."""

    def __init__(self, *looks: str | AskError, late: bool = False, gone: dict[str, Instant] | None = None):
        self.looks = list(looks)
        self.missing_of_late = late
        self.gone = gone or {}

    async def residents(self) -> tuple[SimpleNamespace, ...]:
        look = self.looks.pop(0)
        if isinstance(look, AskError):
            raise look
        return tuple(SimpleNamespace(name=name) for name in look.split())


class Loud(Local):
    async def look(self, not_before: Instant) -> Working:  # type: ignore[override]
        return BUSY


BUSY = Working(Instant(9.0), "its processes use 1.5 cores")
GONE = {"m:latest": Instant(3.0)}


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("lists", "local", "expected"),
    [
        pytest.param(Lists("m:latest"), Local(), QUIET, id="quiet"),
        pytest.param(
            Lists("m:latest", gone={}),
            Loud(),
            Working(Instant(5.0), "it lists m:latest, and its processes use 1.5 cores"),
            id="at work",
        ),
        pytest.param(
            Lists("", gone=GONE),
            Loud(),
            Working(Instant(5.0), "it lists no model, and its processes use 1.5 cores", GONE),
            id="gone some time ago",
        ),
        pytest.param(
            Lists("n", "n", late=True, gone=GONE),
            Loud(),
            Working(Instant(5.0), "it has let a model go", GONE),
            id="gone just now",
        ),
        pytest.param(Lists(AskError("loads")), Local(), QUIET, id="no list, quiet"),
        pytest.param(Lists(AskError("loads")), Loud(), BUSY, id="no list"),
        pytest.param(Lists("n", AskError("loads"), late=True), Loud(), BUSY, id="no second list"),
    ],
)
async def test_ollama(lists: Lists, local: Local, expected: object):
    watcher = OllamaWatcher(lists, local, LoopClock())  # type: ignore[arg-type]
    assert await watcher.look(Instant(5.0)) == expected


def test_each_dialect_has_its_row():
    llama, local, server, clock = Llama(llamacpp.NoSlots()), Local(), Server(Answer(200, b"")), LoopClock()
    rows = {
        dialect: watcher_for(dialect, server, llama, local, clock, Lists(), SimpleNamespace())  # type: ignore[arg-type]
        for dialect in Dialect
    }
    assert isinstance(rows.pop(Dialect.OLLAMA), OllamaWatcher)
    assert isinstance(rows.pop(Dialect.LLAMACPP), LlamaWatcher)
    assert isinstance(rows.pop(Dialect.OPENAI), OpenAiWatcher)
    assert isinstance(rows.pop(Dialect.COMFYUI), ComfyWatcher)
    assert isinstance(rows.pop(Dialect.CHATTERBOX), ChatterboxWatcher)
    assert rows == {}
