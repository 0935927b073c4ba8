from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from standins.operator_api import DictApi, LoopClock
from standins.operator_world import lending_host
from vacancy_operator.api import ApiError
from vacancy_operator.controller import Controller
from vacancy_operator.core.facts import Instant, JoinAddress, Policy
from vacancy_operator.core.kinds import LEASE, LENDING_HOST, HostName, Names, Ref
from vacancy_operator.metrics import Metrics
from vacancy_operator.recorder import Recorder
from vacancy_operator.settings import Settings
from vacancy_operator.store import Store
from vacancy_operator.writer import Writer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from vacancy_operator.api import Api

pytestmark = pytest.mark.looptime
NAMES = Names.of("box")
BOX = Ref(LENDING_HOST, "box")


class Rig:
    def __init__(self) -> None:
        self.api, self.clock, self.metrics = DictApi(), LoopClock(), Metrics()
        settings = Settings(namespace="lending")
        address = JoinAddress("https://10.0.0.1:6443", "CA")
        self.controller = Controller(self.clock, settings, self.metrics, address, lambda: Instant(0.0))
        self.controller.policy = Policy.IN_FORCE
        self.store = Store(self.clock, self.controller.changed)
        recorder = Recorder(cast("Api", self.api), self.clock, "op-1")
        self.writer = Writer(cast("Api", self.api), self.store, self.clock, recorder, lambda: True, 900)

    def seen(self, item: dict[str, Any]) -> None:
        """Somebody writes, and the watch tells."""
        kind = LEASE if item["kind"] == "Lease" else LENDING_HOST
        self.store.put(kind, self.api.put(kind, item))

    def edit(self, **changes: Any) -> None:
        self.seen({**self.api.objects[BOX], **changes})

    def renew(self, time: str) -> None:
        spec = {"holderIdentity": "a", "renewTime": time, "leaseDurationSeconds": 40}
        self.seen({**self.api.objects[NAMES.lease], "spec": spec})

    def condition(self, kind: str) -> str:
        found = self.api.objects[BOX].get("status", {}).get("conditions", [])
        return next((one["status"] for one in found if one["type"] == kind), "")

    def decisions(self) -> int:
        lines = self.metrics.text().decode().splitlines()
        return int(
            float(
                next(x for x in lines if x.startswith("vacancy_operator_reconcile_seconds_count")).split()[1]
            )
        )


@asynccontextmanager
async def running() -> AsyncIterator[Rig]:
    rig = Rig()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(rig.controller.run(rig.store, rig.writer))
        rig.controller.turn(running=True)
        yield rig
        task.cancel()


async def test_a_new_host_is_served_and_then_left_alone() -> None:
    async with running() as rig:
        rig.seen(lending_host())
        await asyncio.sleep(2.0)
        assert set(rig.api.objects) == {BOX, *(ref for ref in NAMES.all if ref != NAMES.join)} | {
            ref for ref in rig.api.objects if ref.kind.name == "Event"
        }
        writes = rig.api.writes()
        await asyncio.sleep(3600.0)
        assert rig.api.writes() == writes


async def test_events_by_the_thousand_are_a_handful_of_decisions() -> None:
    async with running() as rig:
        rig.seen(lending_host())
        await asyncio.sleep(2.0)
        before, writes = rig.decisions(), rig.api.writes()
        for index in range(2000):
            rig.edit(metadata={**rig.api.objects[BOX]["metadata"], "labels": {"n": str(index)}})
            await asyncio.sleep(0.001)
        await asyncio.sleep(5.0)
        assert rig.decisions() - before <= 6
        assert rig.api.writes() == writes


async def test_a_lost_agent_is_told_in_time_without_any_event() -> None:
    async with running() as rig:
        rig.seen(lending_host())
        await asyncio.sleep(2.0)
        rig.renew("1")
        await asyncio.sleep(1.0)
        assert rig.condition("AgentConnected") == "True"
        await asyncio.sleep(38.5)
        assert rig.condition("AgentConnected") == "True"
        await asyncio.sleep(2.0)
        assert (rig.condition("AgentConnected"), rig.condition("Lendable")) == ("Unknown", "Unknown")
        rig.renew("2")
        await asyncio.sleep(1.0)
        assert rig.condition("AgentConnected") == "True"


async def test_what_fails_is_tried_again_and_counted() -> None:
    async with running() as rig:
        rig.api.fail = lambda what: ApiError(500, "x") if what.startswith("apply") else None
        rig.seen(lending_host())
        await asyncio.sleep(100.0)
        assert NAMES.config not in rig.api.objects
        tries = rig.decisions()
        assert 5 < tries < 12
        rig.api.fail = lambda _: None
        rig.controller.recovered()
        await asyncio.sleep(2.0)
        assert NAMES.config in rig.api.objects
        assert b'cause="500"' in rig.metrics.text()


async def test_a_standby_decides_nothing() -> None:
    async with running() as rig:
        rig.controller.turn(running=False)
        rig.seen(lending_host())
        await asyncio.sleep(100.0)
        assert rig.api.calls == []
        assert rig.controller.depth() == 1
        rig.controller.turn(running=True)
        await asyncio.sleep(2.0)
        assert (rig.controller.depth(), NAMES.config in rig.api.objects) == (0, True)


async def test_a_host_that_is_gone_leaves_nothing_behind_in_memory() -> None:
    async with running() as rig:
        rig.seen(lending_host())
        await asyncio.sleep(2.0)
        calls = list(rig.api.calls)
        rig.store.remove(BOX, 10**6)
        await asyncio.sleep(2.0)
        assert rig.api.calls == calls
        assert HostName("box") not in rig.controller._queue._hosts
