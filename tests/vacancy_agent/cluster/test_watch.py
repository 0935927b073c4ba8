"""An object, followed: through edits, deletion, a compacted history, and a server that goes away."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from standins.kube_api import KubeApi, status
from standins.membership import HOSTS, NAME, host, identity
from standins.until import until
from vacancy_agent.clock import SystemClock
from vacancy_agent.cluster.api import ClusterApi
from vacancy_agent.cluster.link import Link
from vacancy_agent.cluster.watch import ObjectWatch, Place

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from vacancy_agent.cluster.fault import ApiError

pytestmark = pytest.mark.component


class Seen:
    def __init__(self) -> None:
        self.states: list[int | None] = []
        self.faults: list[ApiError] = []

    async def __call__(self, found: dict[str, Any] | None) -> None:
        self.states.append(None if found is None else found["metadata"]["generation"])


@pytest.fixture
async def server() -> AsyncIterator[KubeApi]:
    async with KubeApi() as running:
        yield running


@pytest.fixture
async def seen(server: KubeApi, tmp_path: Path) -> AsyncIterator[Seen]:
    clock, seen = SystemClock(), Seen()
    api = ClusterApi(identity(tmp_path, server.url), clock)
    place = Place(HOSTS, NAME, "the host")
    watch = ObjectWatch(api, Link(clock, lambda *_, **__: None), place, seen, seen.faults.append)
    running = asyncio.get_running_loop().create_task(watch.run())
    yield seen
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    await api.close()


async def test_what_is_there_and_each_change(server: KubeApi, seen: Seen):
    await until(lambda: seen.states == [None])
    host(server, {}, generation=1)
    host(server, {}, generation=2)
    server.delete(HOSTS, NAME)
    await until(lambda: seen.states == [None, 1, 2, None])


async def test_another_object_of_the_collection_is_nothing_to_us(server: KubeApi, seen: Seen):
    await until(lambda: seen.states)
    host(server, {}, name="another")
    host(server, {}, generation=7)
    await until(lambda: 7 in seen.states)
    assert seen.states == [None, 7]


async def test_a_server_that_comes_back_is_asked_for_everything(server: KubeApi, seen: Seen):
    host(server, {}, generation=1)
    await until(lambda: 1 in seen.states)
    await server.stop()
    host(server, {}, generation=2)
    server.compact()
    await server.start()
    await until(lambda: 2 in seen.states)


async def test_a_refusal_is_told_and_tried_again(server: KubeApi, seen: Seen):
    server.refuse = lambda _: status(403, "not you")
    await until(lambda: seen.faults)
    host(server, {}, generation=4)
    server.refuse = lambda _: None
    await until(lambda: 4 in seen.states)


async def test_watches_that_end_at_once_are_not_a_busy_loop(server: KubeApi, seen: Seen):
    def short(asked: Any) -> None:
        if "watch" in asked.query:
            asked.query["timeoutSeconds"] = "0.01"

    server.refuse = short  # type: ignore[assignment]
    await asyncio.sleep(4.0)
    assert 2 <= len(server.asked) <= 10
