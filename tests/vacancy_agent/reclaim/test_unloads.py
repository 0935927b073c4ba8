"""Unloads in driven time: real board, real machine, real runner; the server is scripted."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from standins.hosts import host, seen, upstream, vacant
from standins.loop_clock import LoopClock
from vacancy_agent.core.facts import Evidence, Seconds
from vacancy_agent.core.job import Job
from vacancy_agent.core.ledger import Ledger
from vacancy_agent.core.reclaim import Reclaims
from vacancy_agent.core.settings import Dialect, OnOwnerReturn, OwnerSettings, Target
from vacancy_agent.reclaim.runner import ReclaimRunner
from vacancy_agent.reclaim.unloads import Unloads
from vacancy_agent.upstreams.ask import Answer
from vacancy_agent.upstreams.comfyui_free import Freed, NotShown, Skipped
from vacancy_agent.upstreams.ollama_lists import OllamaLists

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.looptime
ROW = {"digest": "d", "size": 5, "size_vram": 5, "context_length": 4096, "expires_at": "2026-01-01T00:00:00Z"}


class Server:
    """An Ollama that lists its model until `goes`, and takes `post_s` to answer an unload."""

    def __init__(self, goes: float = 0.3, post_s: float = 0.0) -> None:
        self.goes = goes
        self.post_s = post_s
        self.posts: list[float] = []
        self.looks: list[float] = []

    async def get(self, path: str, timeout: float) -> Answer:  # noqa: ASYNC109 - as the real one
        assert path == "/api/ps"
        now = LoopClock().now()
        self.looks.append(now)
        models = [] if now >= self.goes else [{"name": "m:latest", **ROW}]
        return Answer(200, json.dumps({"models": models}).encode())

    async def post(self, path: str, body: object, timeout: float) -> Answer:  # noqa: ASYNC109
        assert (path, body) == ("/api/generate", {"model": "m:latest", "keep_alive": 0})
        self.posts.append(LoopClock().now())
        await asyncio.sleep(self.post_s)
        return Answer(200, b'{"done_reason": "unload"}')


class World:
    """A host with these upstreams, of dialect ollama unless said otherwise, at loop time 0."""

    def __init__(self, group: asyncio.TaskGroup, servers: dict[str, Server], **facts: Any) -> None:
        common = {"dialect": Dialect.OLLAMA, "yield_on_veto": True, "on_owner_return": OnOwnerReturn.CANCEL}
        ups = [upstream(name, ("gpu",), slots=3, **(common | facts)) for name in servers]
        self.settings = host(ups, owner=OwnerSettings(release_after=Seconds(0.0)))
        self.clock = LoopClock()
        self.board = vacant(self.settings, 0.0)
        self.ledger = Ledger(self.settings, self.board)
        self.told: list[tuple[float, str, dict[str, object]]] = []
        self.runner = ReclaimRunner(Reclaims(self.settings), self.ledger, self, self.clock, self.tell)
        self.runner.wake = asyncio.get_running_loop().call_later
        lists = {name: OllamaLists(server, self.clock) for name, server in servers.items()}  # type: ignore[arg-type]
        self.unloads = Unloads(
            self,  # type: ignore[arg-type]
            group.create_task,
            lists.get,
            self.runner.unload_result,
        )
        self.runner.unload = self.unloads.start

    def tell(self, event: str, **facts: object) -> None:
        self.told.append((self.clock.now(), event, facts))

    def cut(self, job: Any, reason: object) -> None:
        self.ledger.hold(job, "cut", self.clock.now())

    def returns(self) -> None:
        self.board.set_presence(seen(Evidence.PRESENT, self.clock.now()), self.clock.now())
        self.runner.owner_returned(self.clock.now())

    def leaves(self) -> None:
        self.board.set_presence(seen(at=self.clock.now()), self.clock.now())

    def reports(self) -> list[tuple[float, object]]:
        return [(at, facts["reason"]) for at, event, facts in self.told if event == "reclaimed"]


@contextlib.asynccontextmanager
async def worlds(servers: dict[str, Server], **facts: Any) -> AsyncIterator[World]:
    async with asyncio.TaskGroup() as group:
        world = World(group, servers, **facts)
        yield world
        world.runner.close()
        for unloading in world.unloads.last.values():
            if unloading.task is not None:
                unloading.task.cancel()


async def test_reclaimed_is_reported_when_the_list_is_empty_and_not_before() -> None:
    server = Server(goes=0.25)
    async with worlds({"llm": server}) as world:
        world.returns()
        assert world.runner.claims == {"llm": None}
        await asyncio.sleep(0.2)
        assert world.reports() == []
        assert "llm" in world.ledger.closed
        await asyncio.sleep(0.2)
        ((at, reason),) = world.reports()
        assert (at, reason) == (pytest.approx(0.3), "Reclaimed")
        assert world.runner.claims == {"llm": True}
        assert "llm" not in world.ledger.closed
        assert world.unloads.seen(world.runner.claims) == {"llm": (True, "it showed that it let go")}
    assert server.posts == [0.0]


@pytest.mark.parametrize("post_s", [0.0, 3600.0], ids=["it says yes", "it hangs"])
async def test_a06_not_shown_in_ten_seconds_is_said_once_and_becomes_true_when_it_is(post_s: float) -> None:
    server = Server(goes=90.0, post_s=post_s)
    async with worlds({"llm": server}) as world:
        world.returns()
        await asyncio.sleep(60)
        assert world.reports() == [(10.0, "UnloadNotConfirmed")]
        assert world.unloads.seen(world.runner.claims) == {"llm": (False, "it still lists m:latest")}
        quick = [at for at in server.looks if at <= 10]
        slow = [at for at in server.looks if at > 10.1]
        assert len(quick) <= 15
        assert len(slow) <= 11
        world.returns()
        assert world.runner.claims == {"llm": False}, "a new attempt takes nothing back by itself"
        await asyncio.sleep(60)
        assert [reason for _, reason in world.reports()] == ["UnloadNotConfirmed", "Reclaimed"]
        assert 90 <= world.reports()[1][0] <= 95
    assert server.posts == [0.0, 60.0], "once for each return"


async def test_the_watch_ends_when_lending_resumes() -> None:
    server = Server(goes=1e9)
    async with worlds({"llm": server}) as world:
        world.returns()
        await asyncio.sleep(30)
        world.leaves()
        await asyncio.sleep(6)
        looks = len(server.looks)
        await asyncio.sleep(60)
        assert len(server.looks) == looks
        assert world.unloads.last["llm"].task is None
    assert world.reports() == [(10.0, "UnloadNotConfirmed")]


async def test_no_credit_rests_on_what_was_shown_before_or_during_an_unload() -> None:
    async with worlds({"llm": Server(goes=0.25)}) as world:
        await asyncio.sleep(0.1)
        assert world.board.last_disturbance("gpu") < 0
        world.returns()
        await asyncio.sleep(0)
        assert world.board.last_disturbance("gpu") == pytest.approx(0.1)
        await asyncio.sleep(1)
        assert world.board.last_disturbance("gpu") == pytest.approx(0.4), "and when it had gone"


async def test_upstreams_are_asked_at_the_same_time_and_a_dead_one_delays_nobody() -> None:
    servers = {"a": Server(goes=1e9, post_s=3600), "b": Server(goes=0.05)}
    async with worlds(servers) as world:
        world.returns()
        await asyncio.sleep(1)
        assert world.runner.claims == {"a": None, "b": True}
        await asyncio.sleep(10)
        assert world.runner.claims == {"a": False, "b": True}


async def test_what_is_held_defers_no_unload_and_the_log_names_it() -> None:
    async with worlds({"llm": Server()}) as world:
        job = world.ledger.reserve("llm", world.clock.now(), borrower="ci")
        assert isinstance(job, Job)
        world.ledger.hold(job.id, "the borrower left", world.clock.now())
        world.returns()
        await asyncio.sleep(1)
        assert world.runner.claims == {"llm": True}
        beside = [facts for _, event, facts in world.told if event == "unloads beside a hold"]
        assert beside == [{"upstream": "llm", "job": job.id, "why": "the borrower left"}]
        assert [hold.id for hold in world.ledger.holds()] == [job.id], "it keeps its place"


async def test_a_server_that_is_another_one_now_is_watched_no_longer() -> None:
    server = Server(goes=1e9)
    async with worlds({"llm": server}) as world:
        world.returns()
        await asyncio.sleep(12)
        elsewhere = upstream("llm", dialect=Dialect.OLLAMA, target=Target("http", "10.0.0.1", 1))
        world.board.reconfigure(host([elsewhere]))
        await asyncio.sleep(10)
        assert world.unloads.last["llm"].task is None


async def test_an_upstream_that_nobody_can_ask_is_reported_at_the_deadline() -> None:
    async with worlds({}) as world:
        world.settings = host([upstream(dialect=Dialect.OLLAMA, yield_on_veto=True)])
        world.board.reconfigure(world.settings)
        world.runner.reconfigure(world.settings)
        world.returns()
        assert world.unloads.seen(world.runner.claims) == {"llm": (None, "nobody could ask it")}
        await asyncio.sleep(11)
        assert world.reports() == [(10.0, "UnloadNotConfirmed")]


@pytest.mark.parametrize(
    ("came", "reason", "why"),
    [
        (Freed(9 << 30, 0), "Reclaimed", "it showed that it let go"),
        (NotShown("it does not show its memory"), "UnloadNotConfirmed", "it does not show its memory"),
        (Skipped("prompt 7 in its queue is not a borrower's"), "UnloadNotConfirmed", "prompt 7 in its queue"),
    ],
)
async def test_what_came_of_asking_a_comfyui(came: Freed | NotShown | Skipped, reason: str, why: str) -> None:
    async def free(upstream: str, again: Any) -> Freed | NotShown | Skipped:
        assert upstream == "llm"
        assert await again("it still holds 9000 MiB")
        return came

    async with worlds({"llm": Server()}, dialect=Dialect.COMFYUI) as world:
        world.unloads.free = free
        world.returns()
        await asyncio.sleep(1)
        assert [told for _, told in world.reports()] == [reason]
        assert world.unloads.last["llm"].why.startswith(why)
        skipped = [facts for _, event, facts in world.told if event == "unload skipped"]
        assert len(skipped) == isinstance(came, Skipped)


async def test_a_comfyui_that_nobody_can_ask_is_not_shown() -> None:
    async with worlds({"llm": Server()}, dialect=Dialect.COMFYUI) as world:
        world.returns()
        await asyncio.sleep(0.1)
        assert world.runner.claims == {"llm": False}
