"""The slow look at the upstreams' own sockets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from standins.hosts import upstream
from standins.until import until
from vacancy_agent.core.settings import Target
from vacancy_agent.upstreams.listener_state import ListenerState
from vacancy_agent.wiring import server_listeners
from vacancy_agent.wiring.server_listeners import ServerListeners

NETWORK, LOOPBACK, UNKNOWN = (
    ListenerState.LISTENS_ON_NETWORK,
    ListenerState.LOOPBACK_ONLY,
    ListenerState.UNKNOWN,
)


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.states: dict[str, ListenerState] = {}
        self.looks = 0
        self.told: list[tuple[str, dict[str, object]]] = []
        self.servers = ServerListeners(lambda event, **facts: self.told.append((event, facts)))
        monkeypatch.setattr(server_listeners, "_states", self._look)

    def _look(self, targets: dict[str, Target]) -> dict[str, ListenerState]:
        self.looks += 1
        return {name: self.states.get(name, UNKNOWN) for name in targets}

    def follow(self, *names: str, **changes: Any) -> None:
        self.servers.follow({name: upstream(name, ("gpu",), **changes) for name in names})


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


async def test_a_server_on_the_network_is_told_once_for_each_time_it_is_found_there(world: World):
    world.follow("a", "b")
    assert world.servers.state("a") is UNKNOWN
    world.states = {"a": NETWORK, "b": LOOPBACK}
    for _ in range(3):
        await world.servers.look()
    assert [event for event, _ in world.told] == ["server on the network"]
    assert world.told[0][1]["upstream"] == "a"
    assert (world.servers.state("a"), world.servers.state("b")) == (NETWORK, LOOPBACK)
    for state in (LOOPBACK, NETWORK):
        world.states["a"] = state
        await world.servers.look()
    assert len(world.told) == 2


async def test_what_was_known_of_another_target_is_forgotten(world: World):
    world.follow("a", "b")
    world.states = {"a": LOOPBACK, "b": LOOPBACK}
    await world.servers.look()
    world.follow("a", target=Target("http", "127.0.0.1", 9))
    assert (world.servers.state("a"), world.servers.state("b")) == (UNKNOWN, UNKNOWN)


async def test_a_look_that_was_overtaken_by_a_configuration_is_dropped(world: World):
    world.follow("a")
    world.states = {"a": NETWORK}
    async with asyncio.TaskGroup() as group:
        group.create_task(world.servers.look())
        await asyncio.sleep(0)
        world.follow("a", target=Target("http", "127.0.0.1", 9))
    assert world.servers.state("a") is UNKNOWN
    assert world.told == []


async def test_a_new_configuration_is_looked_at_soon(world: World):
    world.follow("a")
    task = asyncio.get_running_loop().create_task(world.servers.run())
    await until(lambda: world.looks)
    world.states = {"a": LOOPBACK, "b": NETWORK}
    world.follow("a", "b")
    await until(lambda: world.servers.state("b") is NETWORK)
    task.cancel()
