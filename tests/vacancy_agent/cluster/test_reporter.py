"""When the status is written, in the loop's own time: the API is a script."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from standins.loop_clock import LoopClock
from vacancy_agent.cluster.coalesce import Figure, Snapshot
from vacancy_agent.cluster.fault import ApiError
from vacancy_agent.cluster.identity import Identity
from vacancy_agent.cluster.link import Link
from vacancy_agent.cluster.reporter import Reporter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.looptime


@dataclass
class Api:
    """Notes when a status was written, and fails as told."""

    writes: list[float] = field(default_factory=list)
    fault: ApiError | None = None

    async def apply(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.writes.append(asyncio.get_running_loop().time())
        self.last = body
        if self.fault is not None:
            raise self.fault
        return {"metadata": {"resourceVersion": str(len(self.writes))}}


class Rig:
    def __init__(self, folder: Path) -> None:
        self.api, self.report = Api(), report()
        self.there: Snapshot | None = self.report
        clock = LoopClock()
        api: Any = self.api
        self.link = Link(clock, lambda *_, **__: None)
        who = Identity("https://192.0.2.1", "lending", "box", folder)
        self.reporter = Reporter(api, self.link, who, clock, lambda: self.there)

    def change(self, state: str) -> None:
        self.there = report(state)
        self.reporter.nudge()


def report(state: str = "True", free: float = 8000.0) -> Snapshot:
    condition = {"type": "Lendable", "status": state, "reason": "R"}
    shown = int(free) // 512 * 512
    status = {"agent": {"free": shown}, "conditions": [condition]}
    return Snapshot(state, state == "True", "0", {"free": Figure(free, free / 10)}, status)


def seen(state: str = "True", version: int = 99, uid: str = "a") -> dict[str, Any]:
    conditions = [{"type": "Lendable", "status": state, "reason": "R"}]
    return {"metadata": {"uid": uid, "resourceVersion": str(version)}, "status": {"conditions": conditions}}


@contextlib.asynccontextmanager
async def reporting(folder: Path) -> AsyncIterator[Rig]:
    """No fixture: only the test itself runs in driven time."""
    rig = Rig(folder)
    running = asyncio.get_running_loop().create_task(rig.reporter.run())
    yield rig
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_a_change_is_written_at_once_and_the_next_a_second_later(tmp_path: Path):
    async with reporting(tmp_path) as rig:
        await asyncio.sleep(30.0)
        assert len(rig.api.writes) == 1
        rig.change("False")
        await asyncio.sleep(0.3)
        rig.change("Unknown")
        await asyncio.sleep(0.3)
        rig.change("True")
        await asyncio.sleep(10.0)
        rig.change("Unknown")
        await asyncio.sleep(10.0)
        assert rig.api.writes[1:] == pytest.approx([30.0, 31.0, 40.6], abs=0.01)


async def test_an_owners_return_just_after_a_write_is_written_at_once(tmp_path: Path):
    async with reporting(tmp_path) as rig:
        await asyncio.sleep(30.0)
        rig.there = replace(rig.report, state="another", status={**rig.report.status, "agent": {"new": 1}})
        rig.reporter.nudge()
        await asyncio.sleep(0.1)
        rig.there = replace(rig.report, state="a third", status={**rig.report.status, "agent": {"new": 2}})
        rig.reporter.nudge()
        await asyncio.sleep(0.1)
        rig.change("False")
        await asyncio.sleep(0.1)
        assert len(rig.api.writes) == 3


async def test_a_thousand_changes_are_a_write_a_second(tmp_path: Path):
    async with reporting(tmp_path) as rig:
        for index in range(1000):
            rig.change(str(index))
            await asyncio.sleep(0.01)
        assert 9 <= len(rig.api.writes) <= 11


async def test_memory_that_fluctuates_is_not_written(tmp_path: Path):
    async with reporting(tmp_path) as rig:
        await asyncio.sleep(1.0)
        for index in range(60):
            rig.there = report(free=8000.0 * (1 + 0.09 * (-1) ** index))
            await asyncio.sleep(1.0)
        assert len(rig.api.writes) == 1


async def test_nothing_is_written_about_a_host_that_is_not_there(tmp_path: Path):
    async with reporting(tmp_path) as rig:
        await asyncio.sleep(1.0)
        rig.there = None
        await asyncio.sleep(100.0)
        rig.change("False")
        await asyncio.sleep(1.0)
        assert len(rig.api.writes) == 2


async def test_an_outage_is_no_busy_loop_and_its_end_is_noticed(tmp_path: Path):
    async with reporting(tmp_path) as rig:
        await asyncio.sleep(1.0)
        rig.api.fault = ApiError(None, "gone")
        for index in range(300):
            rig.change(str(index))
            await asyncio.sleep(1.0)
        assert len(rig.api.writes) < 60
        rig.api.fault, before = None, len(rig.api.writes)
        rig.link.worked("Lease")
        await asyncio.sleep(3.0)
        assert len(rig.api.writes) == before + 1


async def test_a_refusal_that_stays_is_tried_ever_less_often(tmp_path: Path):
    async with reporting(tmp_path) as rig:
        rig.api.fault = ApiError(422, "not in the schema")
        await asyncio.sleep(3600.0)
        assert len(rig.api.writes) <= 35


async def test_a_server_that_asks_for_time_gets_it(tmp_path: Path):
    async with reporting(tmp_path) as rig:
        await asyncio.sleep(1.0)
        rig.api.fault = ApiError(429, "too many", retry_after=30.0)
        rig.change("False")
        await asyncio.sleep(29.0)
        assert len(rig.api.writes) == 2


async def test_what_somebody_writes_over_ours_is_put_right_once_in_ten_seconds(tmp_path: Path):
    async with reporting(tmp_path) as rig:
        await asyncio.sleep(1.0)
        for _ in range(60):
            rig.reporter.observed(seen("Unknown"))
            await asyncio.sleep(1.0)
        assert 5 <= len(rig.api.writes) - 1 <= 6


async def test_an_old_state_of_the_object_is_no_news(tmp_path: Path):
    async with reporting(tmp_path) as rig:
        await asyncio.sleep(1.0)
        rig.reporter.observed(seen("Unknown", version=0))
        await asyncio.sleep(60.0)
        assert len(rig.api.writes) == 1


async def test_our_own_write_is_no_news(tmp_path: Path):
    async with reporting(tmp_path) as rig:
        await asyncio.sleep(1.0)
        rig.reporter.observed(seen("True"))
        await asyncio.sleep(60.0)
        assert len(rig.api.writes) == 1


async def test_another_object_of_the_same_name_gets_the_report(tmp_path: Path):
    async with reporting(tmp_path) as rig:
        await asyncio.sleep(1.0)
        rig.reporter.observed(seen(uid="a"))
        await asyncio.sleep(5.0)
        rig.reporter.observed(seen(uid="b"))
        await asyncio.sleep(5.0)
        assert len(rig.api.writes) == 2
