"""Handshakes that never finish: counted, bounded, and no reason to turn anybody else away."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ssl
from typing import TYPE_CHECKING

from standins.certificates import write_certificate
from standins.http_engine import GET
from standins.http_sockets import ScriptedUpstream, on_each_loop, raw_request, running
from standins.until import until
from vacancy_http import ListenerLimits, Upstream
from vacancy_http.tls_door import TlsDoor

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    import pytest

    from standins.http_sockets import UpstreamPeer
    from vacancy_http import Listener

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Keys:
    def __init__(self, folder: Path) -> None:
        certificate = write_certificate(folder)
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(certificate, folder / "tls.key")
        self.client = ssl.create_default_context(cafile=str(certificate))


async def answer(peer: UpstreamPeer) -> None:
    while True:
        await peer.request()
        peer.write(OK)


def door_of(listener: Listener) -> TlsDoor:
    door = listener._server
    assert isinstance(door, TlsDoor)
    return door


@on_each_loop
async def test_silent_ones_are_bounded_and_the_oldest_makes_room(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    limits = ListenerLimits(max_connections=20)
    async with (
        ScriptedUpstream(answer) as plain,
        running(Upstream("127.0.0.1", plain.port), limits, keys.server) as (listener, _),
    ):
        door = door_of(listener)
        silent = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(60)]
        await until(lambda: door.handshakes == 20)
        async with asyncio.timeout(10):
            assert await silent[0][0].read() == b""  # the oldest was closed
            for _ in range(5):
                assert (await raw_request(listener.port, GET, keys.client)).endswith(b"ok")
        assert door.handshakes <= 20
        for _, writer in silent:
            writer.close()
        await until(lambda: door.handshakes == 0)
        assert listener.connection_count <= 5


@on_each_loop
async def test_one_that_takes_too_long_is_closed(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    async with (
        ScriptedUpstream(answer) as plain,
        running(Upstream("127.0.0.1", plain.port), ListenerLimits(header_read_s=0.3), keys.server) as (
            listener,
            _,
        ),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(b"\x16\x03\x01")  # the first bytes of a hello
        async with asyncio.timeout(10):
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        await until(lambda: not door_of(listener).handshakes)
        writer.close()


@on_each_loop
async def test_one_that_is_no_tls_or_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    async with (
        ScriptedUpstream(answer) as plain,
        running(Upstream("127.0.0.1", plain.port), ssl=keys.server) as (listener, _),
    ):
        door = door_of(listener)
        for first in (GET, b"\0" * 100, b"", b"\x16\x03\x01\x00\x05hello"):
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(first)
            if not first:
                writer.transport.abort()
            with contextlib.suppress(ConnectionError):
                async with asyncio.timeout(10):
                    await reader.read()
            writer.close()
        await until(lambda: door.handshakes == 0)
        assert (await raw_request(listener.port, GET, keys.client)).endswith(b"ok")
        assert listener.counters.accepted == 1


@on_each_loop
async def test_a_listener_that_closes_breaks_handshakes_off(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    async with (
        ScriptedUpstream(answer) as plain,
        running(Upstream("127.0.0.1", plain.port), ssl=keys.server) as (listener, _),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        await until(lambda: door_of(listener).handshakes == 1)
        async with asyncio.timeout(5):
            await listener.close(0)
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()
        with contextlib.suppress(OSError):
            await asyncio.open_connection("127.0.0.1", listener.port)
            raise AssertionError("it still listens")


@on_each_loop
async def test_clients_that_fill_the_listener_leave_room_for_a_few_handshakes(tmp_path: Path) -> None:
    """Else nobody could come whose head makes an idle one go."""
    keys = Keys(tmp_path)
    async with (
        ScriptedUpstream(answer) as plain,
        running(Upstream("127.0.0.1", plain.port), ListenerLimits(max_connections=2), keys.server) as (
            listener,
            _,
        ),
    ):
        idle = [await asyncio.open_connection("127.0.0.1", listener.port, ssl=keys.client) for _ in range(2)]
        await until(lambda: listener.connection_count == 2)
        assert (await raw_request(listener.port, GET, keys.client)).endswith(b"ok")
        assert listener.counters.evicted == 1
        for _, writer in idle:
            writer.transport.abort()


@on_each_loop
async def test_where_no_descriptor_is_left_it_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = Keys(tmp_path)
    monkeypatch.setattr("vacancy_http.tls_door._WAIT_S", 0.05)
    loop = asyncio.get_running_loop()
    failures = [OSError(errno.EMFILE, "x"), OSError(errno.ECONNABORTED, "x"), OSError(errno.ENFILE, "x")]
    accept = loop.sock_accept

    class Failing:
        """The running loop, whose first accepts fail."""

        def __getattr__(self, name: str) -> object:
            return getattr(loop, name)

        async def sock_accept(self, listening: socket.socket) -> object:
            if failures:
                raise failures.pop()
            return await accept(listening)

    async with (
        ScriptedUpstream(answer) as plain,
        running(Upstream("127.0.0.1", plain.port), ssl=keys.server) as (listener, _),
    ):
        door = TlsDoor(asyncio.Protocol, keys.server, 1, lambda: 1)
        with monkeypatch.context() as patch:
            patch.setattr("vacancy_http.tls_door.asyncio.get_running_loop", Failing)
            await door.open("127.0.0.1", 0, 8)
            await until(lambda: not failures)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", door.sockets[0].getsockname()[1], ssl=keys.client
        )
        del reader
        writer.transport.abort()
        door.close()
        await door.wait_closed()
        assert listener.counters.accepted == 0
