"""The API's socket follows the configuration, and what cannot be had leaves the one before."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from standins.agents import free_port
from standins.certificates import write_certificate
from standins.hosts import host
from standins.running import StillAgent
from vacancy_agent.core.settings import AccessSettings
from vacancy_agent.store.state import StateDir
from vacancy_agent.wiring.api_server import MOST_CONNECTIONS, ApiServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.component


class Rig:
    def __init__(self, state: StateDir) -> None:
        self.state = state
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.agent = StillAgent(host())
        self.agent.host.tell = lambda event, **facts: self.told.append((event, facts))
        self.server = ApiServer(self.agent, state)

    async def follow(self, port: int, **access: Any) -> list[str]:
        return await self.server.follow(AccessSettings(api_port=port, **access))


@asynccontextmanager
async def rig(folder: Path) -> AsyncIterator[Rig]:
    state = StateDir(folder / "state")
    one = Rig(state)
    yield one
    await one.server.close()
    state.close()


async def alive(port: int, *, trusted: Path | None = None) -> bool:
    """Whether an API answers there; over TLS when an authority is given."""
    context: Any = ssl.create_default_context(cafile=str(trusted)) if trusted else False
    url = f"{'https' if trusted else 'http'}://127.0.0.1:{port}/healthz"
    async with aiohttp.ClientSession() as http:
        try:
            async with http.get(url, ssl=context) as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False


async def test_it_listens_and_moves_to_another_port(tmp_path: Path):
    first, second = free_port(), free_port()
    async with rig(tmp_path) as it:
        assert await it.follow(first) == []
        assert await it.follow(first) == []
        assert it.told == [("api", {"address": "127.0.0.1", "port": first})]
        assert await alive(first)
        assert await it.follow(second) == []
        assert await alive(second)
        assert not await alive(first)
    assert not await alive(second)


async def test_a_taken_port_names_its_field_and_leaves_the_one_before(tmp_path: Path):
    port = free_port()
    async with rig(tmp_path) as it:
        assert await it.follow(port) == []
        with socket.create_server(("127.0.0.1", 0)) as taken:
            other = taken.getsockname()[1]
            assert await it.follow(other) == [
                f"spec.access.apiPort: the API cannot listen on 127.0.0.1:{other}:"
                " another program listens there"
            ]
            assert await alive(port)
        assert await it.follow(other) == []
        assert await alive(other)


async def test_an_address_that_is_not_this_machines_names_its_own_field(tmp_path: Path):
    async with rig(tmp_path) as it:
        (error,) = await it.follow(free_port(), listen="192.0.2.1")
        assert error.startswith("spec.access.listen: the API cannot listen on 192.0.2.1:")


async def test_a_certificate_is_used_and_renewed_on_the_same_port(tmp_path: Path):
    port = free_port()
    async with rig(tmp_path) as it:
        folder = it.state.path / "secrets" / "cert"
        first = write_certificate(folder).read_bytes()
        (tmp_path / "first.crt").write_bytes(first)
        assert await it.follow(port, tls_secret="cert") == []
        assert await alive(port, trusted=tmp_path / "first.crt")
        assert not await alive(port), "plain HTTP gets no answer"
        renewed = write_certificate(folder)
        assert await it.follow(port, tls_secret="cert") == []
        assert await alive(port, trusted=renewed)
        assert not await alive(port, trusted=tmp_path / "first.crt")


@pytest.mark.parametrize("fault", ["missing", "damaged"])
async def test_a_certificate_that_cannot_be_used_leaves_what_listens(tmp_path: Path, fault: str):
    port = free_port()
    async with rig(tmp_path) as it:
        assert await it.follow(port) == []
        if fault == "damaged":
            write_certificate(it.state.path / "secrets" / "cert")
            (it.state.path / "secrets" / "cert" / "tls.crt").write_text("x")
        (error,) = await it.follow(port, tls_secret="cert")
        assert error.startswith("spec.access.tls.secretRef: ")
        assert "tls.crt" in error
        assert await alive(port)


async def test_closing_twice_is_closing(tmp_path: Path):
    async with rig(tmp_path) as it:
        await it.server.close()
        assert await it.follow(port := free_port()) == []
        await it.server.close()
        await it.server.close()
        assert not await alive(port)


async def test_who_opens_connections_without_end_takes_none_from_others(tmp_path: Path):
    port = free_port()
    async with rig(tmp_path) as it, contextlib.AsyncExitStack() as stack:
        assert await it.follow(port) == []
        slow = []
        for _ in range(MOST_CONNECTIONS + 20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
            writer.write(b"GET /healthz HT")
            slow.append(reader)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(slow[0].readexactly(1), 10)
        assert await alive(port)
        with pytest.raises(TimeoutError):  # the newest of them are still there
            await asyncio.wait_for(slow[-1].readexactly(1), 0.2)


async def test_what_is_no_http_leaves_no_trace_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    port = free_port()
    async with rig(tmp_path) as it:
        assert await it.follow(port) == []
        for nonsense in (
            b"GET /\xff\x00 HTTP/1.1\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"\x16\x03\x01\r\n\r\n",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(nonsense)
            assert b" 400 " in await asyncio.wait_for(reader.readline(), 10)
            writer.close()
    assert caplog.records == []


async def test_a_failure_of_our_own_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    port = free_port()
    async with rig(tmp_path) as it:
        it.agent.ready = lambda: 1 / 0  # type: ignore[assignment, return-value]
        assert await it.follow(port) == []
        async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{port}/readyz") as answer:
            assert answer.status == 500
    assert [record.name for record in caplog.records] == ["vacancy.api"]
    assert "ZeroDivisionError" in caplog.text
