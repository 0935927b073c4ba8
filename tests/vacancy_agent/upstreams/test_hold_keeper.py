from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING

import pytest

from standins.loop_clock import LoopClock
from standins.until import until
from vacancy_agent.clock import SystemClock
from vacancy_agent.core.facts import Instant, ProcessIdentity, Seconds
from vacancy_agent.core.job import JobId, ReleasedBy
from vacancy_agent.core.settings import Target
from vacancy_agent.upstreams.ask import ServerClient, open_session
from vacancy_agent.upstreams.hold_keeper import HoldKeeper, Watched
from vacancy_agent.upstreams.llamacpp import LlamaCpp
from vacancy_agent.upstreams.local import LocalServer
from vacancy_agent.upstreams.proofs import HeldJob
from vacancy_agent.upstreams.sighting import Idle, Unclear, Working
from vacancy_agent.upstreams.waiting import wait_until
from vacancy_agent.upstreams.watchers import LlamaWatcher

if TYPE_CHECKING:
    from lab.llama_lab import LlamaLab


class Server:
    """A watcher whose server is idle from `idle_from` on, and cannot be reached before `reachable_from`."""

    def __init__(self, idle_from: float, reachable_from: float = 0.0) -> None:
        self.idle_from = idle_from
        self.reachable_from = reachable_from
        self.looks: list[float] = []

    async def look(self, not_before: Instant):
        await wait_until(LoopClock(), not_before)
        now = LoopClock().now()
        self.looks.append(now)
        if now < self.reachable_from:
            return Unclear("not reachable")
        return Idle(now, "idle") if now >= self.idle_from else Working(now, "1 of 1 slots work")


class Process:
    """Stands for `LocalServer`."""

    def __init__(self, gone_from: float) -> None:
        self.gone_from = gone_from

    async def replaced(self, process: ProcessIdentity, admitted: Instant) -> bool:
        return LoopClock().now() >= self.gone_from


class World:
    """The ledger's part: holds, and when they were freed."""

    def __init__(self) -> None:
        self.held: dict[str, list[HeldJob]] = {}
        self.freed: dict[int, tuple[float, ReleasedBy]] = {}
        self.keeper = HoldKeeper(LoopClock(), lambda upstream: list(self.held.get(upstream, ())), self.ended)

    def ended(self, upstream: str, found) -> None:
        for end in found:
            self.freed[end.job] = (LoopClock().now(), end.by)
        gone = {end.job for end in found}
        self.held[upstream] = [job for job in self.held[upstream] if job.id not in gone]

    def hold(self, upstream: str, number: int, process: ProcessIdentity | None = None) -> None:
        self.held.setdefault(upstream, []).append(HeldJob(JobId(number), LoopClock().now(), process))
        self.keeper.nudge()

    @contextlib.asynccontextmanager
    async def running(self, **upstreams: Watched):
        self.keeper.configure(upstreams)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.keeper.run())
            yield
            task.cancel()


@pytest.mark.looptime
async def test_nothing_is_asked_while_nothing_is_held():
    world, server = World(), Server(0.0)
    async with world.running(gpu=Watched(server)):
        await asyncio.sleep(1000)
        assert server.looks == []
        world.hold("gpu", 1)
        await asyncio.sleep(1000)
    assert len(server.looks) == 1
    assert world.freed == {1: (1001.5, ReleasedBy.PROOF)}


@pytest.mark.looptime
async def test_a_server_that_becomes_idle_is_noticed_within_seconds():
    world, server = World(), Server(idle_from=60.0)
    async with world.running(gpu=Watched(server)):
        world.hold("gpu", 1)
        await asyncio.sleep(10)
        assert world.keeper.last == {"gpu": "1 of 1 slots work"}
        await asyncio.sleep(100)
        assert world.keeper.last == {}
    at, by = world.freed[1]
    assert 60.0 <= at <= 62.0
    assert by is ReleasedBy.PROOF
    gaps = [after - before for before, after in zip(server.looks, server.looks[1:], strict=False)]
    assert min(gaps) >= 1.5


@pytest.mark.looptime
async def test_all_holds_of_an_upstream_share_its_looks_and_each_has_its_own_proof():
    world, server = World(), Server(idle_from=0.0)
    async with world.running(gpu=Watched(server)):
        world.hold("gpu", 1)
        world.hold("gpu", 2)
        await asyncio.sleep(1.4)
        world.hold("gpu", 3)
        await asyncio.sleep(0.2)
        assert set(world.freed) == {1, 2}
        await asyncio.sleep(5)
    assert set(world.freed) == {1, 2, 3}
    assert world.freed[3][0] >= 1.4 + 1.5
    assert len(server.looks) == 2


@pytest.mark.looptime
async def test_upstreams_do_not_wait_for_each_other():
    world = World()
    async with world.running(slow=Watched(Server(idle_from=500.0)), quick=Watched(Server(0.0))):
        world.hold("slow", 1)
        world.hold("quick", 2)
        await asyncio.sleep(3)
        assert set(world.freed) == {2}


@pytest.mark.looptime
async def test_a_server_that_cannot_be_reached_is_asked_less_often_and_found_again():
    world, server = World(), Server(idle_from=0.0, reachable_from=100.0)
    async with world.running(gpu=Watched(server)):
        world.hold("gpu", 1)
        await asyncio.sleep(99)
        assert world.keeper.last == {"gpu": "not reachable"}
        await asyncio.sleep(15)
    assert world.freed[1][0] <= 111.0
    assert len(server.looks) <= 14


@pytest.mark.looptime
async def test_a_gone_process_frees_what_it_had_without_a_proof():
    world = World()
    watched = Watched(Server(idle_from=1e9), Process(gone_from=20.0))  # type: ignore[arg-type]
    async with world.running(gpu=watched):
        world.hold("gpu", 1, ProcessIdentity(4, 1.0))
        world.hold("gpu", 2)
        await asyncio.sleep(60)
    assert world.freed.keys() == {1}
    at, by = world.freed[1]
    assert 20.0 <= at <= 22.0
    assert by is ReleasedBy.REPLACED


@pytest.mark.looptime
async def test_an_end_is_assumed_when_the_owner_said_so():
    world = World()
    watched = Watched(Server(idle_from=1e9), assume_ended_after=Seconds(30.0))
    async with world.running(gpu=watched):
        world.hold("gpu", 1)
        await asyncio.sleep(60)
    at, by = world.freed[1]
    assert 30.0 <= at <= 32.0
    assert by is ReleasedBy.ASSUMED


@pytest.mark.looptime
async def test_the_holds_of_an_upstream_that_was_removed_stay_and_are_looked_after_when_it_returns():
    world, server = World(), Server(idle_from=0.0)
    async with world.running(gpu=Watched(server)):
        world.keeper.configure({})
        world.hold("gpu", 1)
        await asyncio.sleep(60)
        assert world.freed == {}
        world.keeper.configure({"gpu": Watched(server)})
        await asyncio.sleep(3)
    assert set(world.freed) == {1}


@pytest.mark.component
@pytest.mark.llama
async def test_against_a_real_server_a_hold_ends_soon_after_the_work_did(llama: LlamaLab):
    clock, freed, held = SystemClock(), asyncio.Event(), []
    keeper = HoldKeeper(clock, lambda _: held, lambda *_: (held.clear(), freed.set()))
    async with open_session() as session, asyncio.TaskGroup() as group:
        target = Target("http", "127.0.0.1", llama.port)
        server, local = ServerClient(session, target), LocalServer(target, clock)
        keeper.configure({"gpu": Watched(LlamaWatcher(LlamaCpp(server, clock), local), local)})
        task = group.create_task(keeper.run())
        body = b'{"prompt": "lend", "n_predict": 7000, "ignore_eos": true}'
        with socket.create_connection(("127.0.0.1", llama.port)) as client:
            client.sendall(
                b"POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
            )
            await until(lambda: llama.busy() == 1)
        held.append(HeldJob(JobId(1), clock.now(), None))
        keeper.nudge()
        async with asyncio.timeout(20):
            await freed.wait()
        task.cancel()
    assert llama.busy() == 0
