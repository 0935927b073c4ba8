from __future__ import annotations

import asyncio
import json
import socket
from itertools import pairwise
from pathlib import Path

import pytest

from lab.llama_lab import LabOptions, LlamaLab, llama_server
from standins.fixtures_llama import require_llama
from standins.loop_clock import LoopClock
from standins.until import until
from vacancy_agent.clock import SystemClock
from vacancy_agent.core.facts import Instant
from vacancy_agent.core.settings import Target
from vacancy_agent.upstreams.ask import Answer, AskError, ServerClient, open_session
from vacancy_agent.upstreams.llamacpp import (
    Asleep,
    LlamaCpp,
    NoSlots,
    Router,
    SlotsBusy,
    SlotsIdle,
    Unreachable,
    read_props,
    read_slots,
)

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "llama"


def recorded(name: str) -> Answer:
    raw = (RECORDED / name).read_bytes()
    if name.endswith(".json"):
        return Answer(200, raw)
    head, _, body = raw.partition(b"\r\n\r\n")
    return Answer(int(head.split()[1]), body)


# Recorded from llama-server b11434.
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("props.http", None),
        ("props_router.http", Router()),
        ("props_sleeping.json", Asleep()),
        ("props_no_key.http", Unreachable("refuses the key: set credentialSecretRef to its --api-key")),
        ("loading.http", Unreachable("loads its model")),
    ],
)
def test_props(name: str, expected: object):
    assert read_props(recorded(name)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("slots_idle.http", SlotsIdle(2)),
        ("slots_off.http", NoSlots()),
        ("loading.http", Unreachable("loads its model")),
        ("props_no_key.http", Unreachable("refuses the key: set credentialSecretRef to its --api-key")),
    ],
)
def test_slots(name: str, expected: object):
    assert read_slots(recorded(name)) == expected


def test_busy_slots_are_counted():
    one, two = (
        read_slots(recorded("slots_busy_stream_close.json")),
        read_slots(recorded("slots_2busy_1queued.json")),
    )
    assert (one, two) == (SlotsBusy(1, 2), SlotsBusy(2, 2))


@pytest.mark.parametrize("body", ["[]", "{}", "null", "[1]", "[{}]", '[{"is_processing": 0}]', '[{"id": 1}]'])
def test_what_is_not_understood_is_not_idle(body: str):
    assert read_slots(Answer(200, body.encode())) == Unreachable("its /slots cannot be read")


class Server:
    """Answers as told; notes when it was asked for what."""

    def __init__(self, **answers: Answer | AskError) -> None:
        self.answers = answers
        self.asked: list[tuple[float, str]] = []

    async def get(self, path: str) -> Answer:
        self.asked.append((LoopClock().now(), path))
        await asyncio.sleep(0.1)
        answer = self.answers[path.removeprefix("/")]
        if isinstance(answer, AskError):
            raise answer
        return answer


@pytest.mark.looptime
@pytest.mark.parametrize(
    "name", ["props_router.http", "props_sleeping.json", "props_no_key.http", "loading.http"]
)
async def test_slots_are_not_asked_for_where_that_does_harm(name: str):
    server = Server(props=recorded(name))
    look = await LlamaCpp(server, LoopClock()).look(Instant(0.0))  # type: ignore[arg-type]
    assert look.slots == read_props(recorded(name))
    assert [path for _, path in server.asked] == ["/props"]


@pytest.mark.looptime
async def test_all_looks_together_are_at_least_a_second_and_a_half_apart():
    server = Server(props=recorded("props.http"), slots=recorded("slots_idle.http"))
    llama = LlamaCpp(server, LoopClock())  # type: ignore[arg-type]
    assert llama.last is None
    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(llama.look(LoopClock().now()))
    assert [path for _, path in server.asked] == ["/props", "/slots"], (
        "they wanted nothing newer than the first"
    )
    for _ in range(3):
        await llama.look(LoopClock().now())
    times = [at for at, path in server.asked if path == "/slots"]
    assert min(after - before for before, after in pairwise(times)) >= 1.5
    assert llama.last is not None
    assert llama.last.slots == SlotsIdle(2)


@pytest.mark.looptime
async def test_a_look_does_not_begin_before_it_may():
    server = Server(props=recorded("props.http"), slots=recorded("slots_idle.http"))
    llama = LlamaCpp(server, LoopClock())  # type: ignore[arg-type]
    assert (await llama.look(Instant(0.0))).began < 1.0
    assert (await llama.look(Instant(60.0))).began >= 60.0
    assert server.asked[2][0] == pytest.approx(60.0)


@pytest.mark.looptime
async def test_a_server_that_does_not_answer_is_unreachable():
    server = Server(props=recorded("props.http"), slots=AskError("no answer"))
    assert (await LlamaCpp(server, LoopClock()).look(Instant(0.0))).slots == Unreachable("no answer")  # type: ignore[arg-type]


# From here on against a real llama-server.

LONG = {"prompt": "lend", "n_predict": 6000, "ignore_eos": True}
real = [pytest.mark.component, pytest.mark.llama]


def ask(lab: LlamaLab, body: dict[str, object]) -> socket.socket:
    """Send a request and leave the connection open."""
    data = json.dumps(body).encode()
    head = f"POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n"
    client = socket.create_connection(("127.0.0.1", lab.port))
    client.sendall(head.encode() + data)
    return client


class Real:
    def __init__(self, lab: LlamaLab, server: ServerClient) -> None:
        self.lab = lab
        self.llama = LlamaCpp(server, SystemClock())

    async def now(self):
        return (await self.llama.look(SystemClock().now())).slots

    async def seconds_to_idle(self, within: float = 40.0) -> float:
        """Looks as the keeper does: first 1.5 s after now, then every 1.5 s."""
        closed = SystemClock().now()
        async with asyncio.timeout(within):
            look = await self.llama.look(Instant(closed + 1.5))
            while not isinstance(look.slots, SlotsIdle):
                look = await self.llama.look(SystemClock().now())
        return look.began - closed


@pytest.fixture
async def quick(llama: LlamaLab):
    async with open_session() as session:
        yield Real(llama, ServerClient(session, Target("http", "127.0.0.1", llama.port)))


@pytest.fixture
async def slow(slow_llama: LlamaLab):
    async with open_session() as session:
        yield Real(slow_llama, ServerClient(session, Target("http", "127.0.0.1", slow_llama.port)))


@pytest.mark.component
@pytest.mark.llama
async def test_real_idle_busy_idle(quick: Real):
    assert await quick.now() == SlotsIdle(2)
    with ask(quick.lab, {**LONG, "stream": True}):
        assert await quick.now() == SlotsBusy(1, 2)
    assert await quick.seconds_to_idle() < 10


@pytest.mark.component
@pytest.mark.llama
@pytest.mark.parametrize("stream", [True, False], ids=["streaming", "whole"])
async def test_real_client_that_leaves_during_generation_frees_the_slot_at_the_first_look(
    slow: Real, stream: bool
):
    with ask(slow.lab, {**LONG, "stream": stream}):
        assert isinstance(await slow.now(), SlotsBusy)
    assert await slow.seconds_to_idle() < 4


@pytest.mark.component
@pytest.mark.llama
@pytest.mark.parametrize("stream", [True, False], ids=["streaming", "whole"])
async def test_real_client_that_leaves_during_the_prompt_is_noticed_when_its_batch_is_done(
    slow: Real, stream: bool
):
    # Another prompt each time, or the cache of the one before makes it short.
    prompt = f"{stream}" + "z" * 5000
    with ask(slow.lab, {"prompt": prompt, "n_predict": 2000, "ignore_eos": True, "stream": stream}):
        await asyncio.sleep(0.3)
    assert await slow.seconds_to_idle() < 40


@pytest.mark.component
@pytest.mark.llama
async def test_real_looking_too_often_keeps_abandoned_work_running(slow: Real):
    with ask(slow.lab, {**LONG, "stream": False}):
        await until(lambda: slow.lab.busy() == 1)
    for _ in range(40):
        await asyncio.sleep(0.1)
        assert slow.lab.busy() == 1, "this is why looks are 1.5 s apart"
    assert await slow.seconds_to_idle() < 6


@pytest.mark.component
@pytest.mark.llama
async def test_real_server_that_sleeps_is_left_asleep():
    require_llama()
    with llama_server(LabOptions(sleep_idle_seconds=1)) as lab:
        async with open_session() as session:
            llama = LlamaCpp(ServerClient(session, Target("http", "127.0.0.1", lab.port)), SystemClock())
            await until(lambda: lab.get("/props")["is_sleeping"], within=20)
            for _ in range(2):
                assert (await llama.look(SystemClock().now())).slots == Asleep()


@pytest.mark.component
@pytest.mark.llama
async def test_real_key_and_missing_slots():
    require_llama()
    with llama_server(LabOptions(api_key="k", slots_endpoint=False)) as lab:
        target = Target("http", "127.0.0.1", lab.port)
        async with open_session() as session:
            without, having = ServerClient(session, target), ServerClient(session, target, "k")
            look = await LlamaCpp(without, SystemClock()).look(Instant(0.0))
            assert isinstance(look.slots, Unreachable)
            assert "refuses the key" in look.slots.why
            assert (await LlamaCpp(having, SystemClock()).look(Instant(0.0))).slots == NoSlots()
            lab.kill()
            look = await LlamaCpp(having, SystemClock()).look(Instant(0.0))
            assert isinstance(look.slots, Unreachable)
