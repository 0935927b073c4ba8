"""The Lease, in the loop's own time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from standins.loop_clock import LoopClock
from vacancy_agent.cluster.fault import ApiError
from vacancy_agent.cluster.heartbeat import Heartbeat, lease
from vacancy_agent.cluster.identity import Identity
from vacancy_agent.cluster.link import Link
from vacancy_agent.core.facts import WallTime

if TYPE_CHECKING:
    from pathlib import Path


class Api:
    def __init__(self) -> None:
        self.beats: list[float] = []
        self.takes = 0.0
        self.fault: ApiError | None = None

    async def apply(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        assert path == "/apis/coordination.k8s.io/v1/namespaces/lending/leases/lh-box"
        self.beats.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.takes)
        if self.fault is not None:
            raise self.fault
        return {}


def who(folder: Path) -> Identity:
    return Identity("https://192.0.2.1", "lending", "box", folder)


async def beat_for(seconds: float, api: Api, folder: Path) -> None:
    clock, anything = LoopClock(), api
    link = Link(clock, lambda *_, **__: None)
    heart = Heartbeat(anything, link, who(folder), clock)  # type: ignore[arg-type]
    running = asyncio.get_running_loop().create_task(heart.run())
    await asyncio.sleep(seconds)
    running.cancel()


@pytest.mark.looptime
@pytest.mark.parametrize("takes", [0.0, 4.0])
async def test_it_beats_every_ten_seconds_however_long_a_beat_takes(tmp_path: Path, takes: float):
    api = Api()
    api.takes = takes
    await beat_for(100.0, api, tmp_path)
    assert 10 <= len(api.beats) <= 11


@pytest.mark.looptime
async def test_a_failed_beat_is_tried_again_four_times_within_the_lease(tmp_path: Path):
    api = Api()
    api.fault = ApiError(None, "gone")
    await beat_for(40.0, api, tmp_path)
    assert 6 <= len(api.beats) <= 8


@pytest.mark.looptime
async def test_a_server_that_asks_for_time_gets_it(tmp_path: Path):
    api = Api()
    api.fault = ApiError(429, "too many", retry_after=30.0)
    await beat_for(29.0, api, tmp_path)
    assert len(api.beats) == 1


@pytest.mark.looptime
async def test_one_that_is_wanted_comes_at_once(tmp_path: Path):
    api, clock = Api(), LoopClock()
    link = Link(clock, lambda *_, **__: None)
    heart = Heartbeat(api, link, who(tmp_path), clock)  # type: ignore[arg-type]
    loop = asyncio.get_running_loop()
    running = loop.create_task(heart.run())
    loop.call_later(3.0, heart.soon)
    await asyncio.sleep(4.0)
    running.cancel()
    assert api.beats == [0.0, 3.0]


def test_the_lease_says_who_for_how_long_and_since_when(tmp_path: Path):
    made = lease(who(tmp_path), "box-1", WallTime(1_772_366_400.25))
    assert made["metadata"] == {"namespace": "lending", "name": "lh-box"}
    assert made["spec"] == {
        "holderIdentity": "box-1",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-03-01T12:00:00.250000Z",
    }
