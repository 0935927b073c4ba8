"""What observes: nothing twice, no gap at a reload that changes none of it, and no trace of what is over."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from standins.hosts import host, resource, upstream
from standins.sink import RecordingSink
from standins.until import until
from vacancy_agent.clock import SystemClock
from vacancy_agent.core.facts import CpuCapacity, ProcessIdentity, Ready, Seconds, Unknown
from vacancy_agent.core.settings import OwnerSettings, ResourceType, SamplingSettings
from vacancy_agent.upstreams.process import NotFound, NotLocal, Relayed, started_at
from vacancy_agent.wiring import collectors as module
from vacancy_agent.wiring.collectors import Collectors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from vacancy_agent.core.settings import HostSettings

QUICK = SamplingSettings(interval=Seconds(0.05))


class Server:
    """Stands for an upstream's process: what `find` answers, and how often it was asked."""

    def __init__(self, found: object) -> None:
        self.found = found
        self.asked = 0

    async def find(self, *, fresh: bool = False) -> object:
        assert fresh, "an answer kept from before is no search"
        self.asked += 1
        return self.found


def settings(**more: Any) -> HostSettings:
    resources = (resource("ram", ResourceType.MEMORY), resource("cpu", ResourceType.CPU), resource("gpu"))
    facts: dict[str, Any] = {"owner": OwnerSettings(headless=True), "sampling": QUICK}
    return host((upstream("llm", ("ram",)),), resources, **(facts | more))


class Rig:
    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.group = group
        self.processes: dict[str, ProcessIdentity] = {}
        self.collectors = Collectors(SystemClock(), self.processes)
        self.sink = RecordingSink()

    def start(self, wanted: HostSettings, **servers: Server) -> None:
        self.collectors.start(self.group, wanted, self.sink, servers)  # type: ignore[arg-type]


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    async with asyncio.TaskGroup() as group:
        one = Rig(group)
        yield one
        one.collectors.stop()


@pytest.fixture(autouse=True)
def _no_card(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


async def test_presence_and_every_resource_are_read_without_being_asked():
    async with rig() as it:
        it.start(settings())
        await it.sink.until(lambda sink: sink.presence and {"ram", "cpu", "gpu"} <= sink.capacity.keys())


async def test_a_reload_that_changes_nothing_observed_leaves_no_gap():
    async with rig() as it:
        it.start(settings())
        await it.sink.until(lambda sink: any(isinstance(reading, Ready) for reading in sink.capacity["cpu"]))
        running = it.collectors._observing
        other = replace(settings(), upstreams={"new": upstream("new", ("ram",), port=9001)})
        seen = len(it.sink.capacity["cpu"])
        it.start(other)
        assert it.collectors._observing is running
        await it.sink.until(lambda sink: len(sink.capacity["cpu"]) >= seen + 3)
        assert all(isinstance(reading, Ready) for reading in it.sink.capacity["cpu"][seen:])
        assert isinstance(it.sink.capacity["cpu"][-1].value, CpuCapacity)


@pytest.mark.parametrize(
    "changed",
    [
        settings(sampling=SamplingSettings(interval=Seconds(0.04))),
        settings(owner=OwnerSettings(headless=True, release_after=Seconds(1))),
        replace(settings(), resources={"ram": resource("ram", ResourceType.MEMORY)}),
    ],
)
async def test_a_reload_that_changes_what_is_observed_starts_anew(changed: HostSettings):
    async with rig() as it:
        it.start(settings())
        before = it.collectors._observing
        it.start(changed)
        assert before is not None
        await until(before.done)
        assert before.cancelled()
        await it.sink.until(lambda sink: sink.capacity["ram"])


async def test_memory_and_processors_are_read_within_the_call_and_a_card_is_not():
    async with rig() as it:
        assert not it.collectors.now("ram"), "nothing observes yet"
        it.start(settings())
        assert it.collectors.now("ram")
        assert len(it.sink.capacity["ram"]) == 1
        assert not it.collectors.now("gpu")
        assert not it.collectors.now("nonsense")


async def test_many_wishes_are_one_sample_and_leave_nothing_behind():
    async with rig() as it:
        it.start(settings(sampling=SamplingSettings(interval=Seconds(3600))))
        await it.sink.until(lambda sink: sink.capacity["gpu"] and sink.capacity["ram"])
        seen = {name: len(readings) for name, readings in it.sink.capacity.items()}
        for _ in range(50):
            it.collectors.soon(("gpu", "ram"))
        await it.sink.until(lambda sink: len(sink.capacity["gpu"]) > seen["gpu"])
        await until(lambda: not it.collectors._sampling)
        assert (
            len(it.sink.capacity["ram"]) - seen["ram"] <= 2
        )  # the first reply's, and the one with the probe
        assert len(it.sink.capacity["gpu"]) - seen["gpu"] == 1


async def test_the_sample_that_a_jobs_end_asked_for_is_the_one_that_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
):
    runs: list[asyncio.Event] = []

    async def probed(_self: object) -> Unknown:
        runs.append(done := asyncio.Event())
        await done.wait()
        return Unknown("a test")

    monkeypatch.setattr("vacancy_agent.collect.nvidia.NvidiaProbe.sample", probed)
    async with rig() as it:
        it.start(settings(sampling=SamplingSettings(interval=Seconds(3600))))
        await until(lambda: len(runs) == 1)
        runs[0].set()
        await it.sink.until(lambda sink: sink.capacity["gpu"])
        it.collectors.soon(("gpu",))
        await until(lambda: len(runs) == 2)
        waits = it.group.create_task(it.collectors.fresh(("gpu",)))
        await asyncio.sleep(0)
        runs[1].set()
        await until(waits.done)
        assert len(it.sink.capacity["gpu"]) == len(runs) == 2, (
            "it began after the job, and no other is needed"
        )
        again = it.group.create_task(it.collectors.fresh(("gpu",)))
        await until(lambda: len(runs) == 3)
        runs[2].set()
        await until(again.done)


async def test_probes_that_were_given_up_are_counted_over_reloads(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("vacancy_agent.collect.observers.Observers.abandoned_probes", 2)
    async with rig() as it:
        assert it.collectors.abandoned_probes == 0
        it.start(settings())
        assert it.collectors.abandoned_probes == 2
        it.start(settings(sampling=SamplingSettings(interval=Seconds(0.04))))
        assert it.collectors.abandoned_probes == 4
    assert it.collectors.abandoned_probes == 4


async def test_a_wish_after_the_end_is_not_an_error():
    async with rig() as it:
        it.start(settings())
        it.collectors.soon(("gpu", "ram"))
        it.collectors.stop()
        await asyncio.sleep(0)
        it.collectors.soon(("gpu",))
        await it.collectors.fresh(("gpu",))
        assert not it.collectors.now("ram")
        assert not it.collectors._sampling


async def test_the_process_behind_an_upstream_is_known_and_forgotten_with_it():
    myself = ProcessIdentity(os.getpid(), started_at(psutil.Process()))
    async with rig() as it:
        here, away = Server(myself), Server(NotFound("nobody listens", nothing_listens=True))
        it.start(settings(), llm=here, other=away)
        await until(lambda: it.processes)
        assert it.processes == {"llm": myself}
        await until(lambda: away.asked > 2)
        assert here.asked == 1, "one that lives is not searched for at every poll"
        it.start(settings(), llm=here, other=away)
        assert it.processes == {"llm": myself}, "the same server is still the same"
        it.start(settings(), llm=Server(NotFound("nobody listens", nothing_listens=True)))
        assert it.processes == {}, "another server is not known yet"


async def test_a_process_that_ended_is_searched_for_at_the_next_poll(monkeypatch: pytest.MonkeyPatch):
    alive = True
    monkeypatch.setattr(module, "is_alive", lambda _process: alive)
    async with rig() as it:
        server = Server(ProcessIdentity(1, 2.0))
        it.start(settings(), llm=server)
        await until(lambda: it.processes)
        server.found = NotFound("nobody listens", nothing_listens=True)
        alive = False
        await until(lambda: not it.processes)


@pytest.mark.parametrize(
    "found", [Relayed(ProcessIdentity(1, 2.0), "nginx"), NotFound("it cannot be seen"), NotLocal()]
)
async def test_who_cannot_be_known_is_not_searched_for_at_every_poll(found: object):
    """A search looks at every descriptor of the machine: it was most of what an idle agent did."""
    async with rig() as it:
        hidden, absent = Server(found), Server(NotFound("nobody listens", nothing_listens=True))
        it.start(settings(), llm=hidden, other=absent)
        await until(lambda: absent.asked > 3)
        assert hidden.asked == 1
        assert it.processes == {}
