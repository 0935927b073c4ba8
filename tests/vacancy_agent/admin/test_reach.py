"""Whether servers take connections, on real sockets."""

from __future__ import annotations

import asyncio
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from standins.agents import free_port
from standins.hosts import upstream
from vacancy_agent.admin import reach
from vacancy_agent.core.settings import Target

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.component


@contextmanager
def listening(backlog: int = 5) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as server:
        yield server.getsockname()[1]


async def look(*targets: Target) -> list[str | None]:
    upstreams = {str(i): upstream(str(i), ("ram",), target=target) for i, target in enumerate(targets)}
    found = await reach.unreachable(upstreams)
    return [found[name] for name in upstreams]


def here(port: int, host: str = "127.0.0.1") -> Target:
    return Target("http", host, port)


async def test_a_server_that_listens_a_dead_one_and_a_name_that_does_not_exist():
    with listening() as port:
        found = await look(here(port), here(free_port()), here(port, "nowhere.invalid"), here(port, "::1"))
    assert found[:2] == [None, "connection refused: is it running?"]
    assert found[2]
    assert found[3]


async def test_a_server_that_is_stuck_is_told_in_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reach, "DEADLINE_S", 0.2)
    with (
        listening(backlog=0) as port,
        socket.create_connection(("127.0.0.1", port)),
        socket.socket() as second,
    ):
        second.setblocking(False)
        second.connect_ex(("127.0.0.1", port))
        (found,) = await look(here(port))
    assert found == "no connection within 0 s"


async def test_two_upstreams_of_one_server_make_one_connection():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        target = here(server.getsockname()[1])
        assert await look(target, target) == [None, None]
        await asyncio.sleep(0)
        server.accept()[0].close()
        with pytest.raises(BlockingIOError):
            server.accept()
