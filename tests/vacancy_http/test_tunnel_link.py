"""The upstream's end over real sockets, on each loop: where their transports differ, it shows here."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ssl
from random import Random
from typing import TYPE_CHECKING

from standins.certificates import write_certificate
from standins.http_sockets import ScriptedUpstream, client, on_each_loop, running
from standins.until import until
from standins.websocket_text import agreed, handshake
from vacancy_http import Ending, ListenerLimits, Upstream

if TYPE_CHECKING:
    from pathlib import Path

    from standins.http_engine import NotingApp
    from standins.http_sockets import UpstreamPeer
    from vacancy_http import Exchange

SIZE = 5 << 20


def tunnels(app: NotingApp) -> None:
    def tunnel(x: Exchange) -> None:
        x.tunnel(app.upstream, target=x.target, drop=frozenset(), add=())

    app.on_head = tunnel


async def accept(peer: UpstreamPeer) -> None:
    await peer.request()
    peer.write(agreed())


async def accept_for_long(peer: UpstreamPeer) -> None:
    await accept(peer)
    assert await peer.closed(10)


async def head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


@on_each_loop
async def test_megabytes_pass_both_ways_at_once_unchanged() -> None:
    rng = Random(1)  # noqa: S311 - bytes to send
    up, down = rng.randbytes(SIZE), rng.randbytes(SIZE)
    digests: list[str] = []

    async def script(peer: UpstreamPeer) -> None:
        await accept(peer)

        async def send() -> None:
            for at in range(0, SIZE, 100_003):
                peer.write(down[at : at + 100_003])
                await peer.writer.drain()

        async with asyncio.TaskGroup() as group:
            group.create_task(send())
            digests.append(hashlib.sha256(await peer.reader.readexactly(SIZE)).hexdigest())

    async with (
        ScriptedUpstream(script) as server,
        running(Upstream("127.0.0.1", server.port)) as (listener, app),
    ):
        tunnels(app)
        async with client(listener.port) as (reader, writer):
            writer.write(handshake() + up[:5000])  # part of it before the 101
            await head(reader)

            async def send() -> None:
                for at in range(5000, SIZE, 50_021):
                    writer.write(up[at : at + 50_021])
                    await writer.drain()

            async with asyncio.timeout(30), asyncio.TaskGroup() as group:
                group.create_task(send())
                assert await reader.readexactly(SIZE) == down
        await until(lambda: digests)
        assert digests == [hashlib.sha256(up).hexdigest()]


@on_each_loop
async def test_the_last_words_of_a_client_that_leaves_arrive() -> None:
    heard: list[bytes] = []

    async def script(peer: UpstreamPeer) -> None:
        await accept(peer)
        heard.append(await peer.reader.read())  # up to the end

    async with (
        ScriptedUpstream(script) as server,
        running(Upstream("127.0.0.1", server.port)) as (listener, app),
    ):
        tunnels(app)
        async with client(listener.port) as (reader, writer):
            writer.write(handshake())
            await head(reader)
            writer.write(b"last words")
        await until(lambda: heard and app.endings)
        assert heard == [b"last words"]
        assert app.endings == [Ending.CLIENT_GONE]
        assert listener.counters.tunnels == 0


@on_each_loop
async def test_the_last_words_of_an_upstream_that_closes_arrive() -> None:
    async def script(peer: UpstreamPeer) -> None:
        await accept(peer)
        peer.write(b"x" * 1_000_000 + b"last words")
        await peer.writer.drain()

    async with (
        ScriptedUpstream(script) as server,
        running(Upstream("127.0.0.1", server.port)) as (listener, app),
    ):
        tunnels(app)
        async with client(listener.port) as (reader, writer):
            writer.write(handshake())
            await head(reader)
            async with asyncio.timeout(10):
                got = await reader.read(-1)
            assert len(got) == 1_000_010
            assert got.endswith(b"last words")
        assert app.endings == [Ending.TUNNEL_ENDED]


@on_each_loop
async def test_who_does_not_read_is_not_read_for_and_memory_stays_flat() -> None:
    """The upstream floods a client that takes nothing: what is buffered here is bounded."""
    sent = 0

    async def script(peer: UpstreamPeer) -> None:
        nonlocal sent
        await accept(peer)
        while True:
            peer.write(b"x" * 65_536)
            await peer.writer.drain()
            sent += 65_536

    async with (
        ScriptedUpstream(script) as server,
        running(Upstream("127.0.0.1", server.port)) as (listener, app),
    ):
        tunnels(app)
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=1024)
        writer.write(handshake())
        await head(reader)
        before = -1
        while sent != before:  # until everybody's buffers are full
            before = sent
            await asyncio.sleep(0.3)
        connection = next(iter(listener._connections))
        assert connection.stalled
        assert connection.transport.get_write_buffer_size() < 1 << 20
        writer.transport.abort()
        await until(lambda: app.endings)
        assert app.endings == [Ending.CLIENT_GONE]


@on_each_loop
async def test_a_closing_listener_cuts_the_tunnel_after_its_grace() -> None:
    async with (
        ScriptedUpstream(accept_for_long) as server,
        running(Upstream("127.0.0.1", server.port)) as (listener, app),
    ):
        tunnels(app)
        async with client(listener.port) as (reader, writer):
            writer.write(handshake())
            await head(reader)
            async with asyncio.timeout(10):
                await listener.close(0.2)
            assert app.endings == [Ending.CANCELLED]
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""


@on_each_loop
async def test_a_silent_tunnel_ends() -> None:
    limits = ListenerLimits(tunnel_idle_s=0.5)
    async with (
        ScriptedUpstream(accept_for_long) as server,
        running(Upstream("127.0.0.1", server.port), limits) as (listener, app),
    ):
        tunnels(app)
        async with client(listener.port) as (reader, writer):
            writer.write(handshake())
            await head(reader)
            async with asyncio.timeout(10):
                assert await reader.read() == b""
        assert app.endings == [Ending.TUNNEL_IDLE]


@on_each_loop
async def test_tls_on_both_sides(tmp_path: Path) -> None:
    certificate = write_certificate(tmp_path)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, tmp_path / "tls.key")
    asking = ssl.create_default_context(cafile=str(certificate))
    heard: list[bytes] = []

    async def script(peer: UpstreamPeer) -> None:
        await accept(peer)
        peer.write(b"x" * 300_000)
        heard.append(await peer.reader.readexactly(300_000))

    async with (
        ScriptedUpstream(script) as server,
        running(Upstream("127.0.0.1", server.port), ssl=serving) as (inner, app),
        running(Upstream("127.0.0.1", inner.port, tls=asking), ssl=serving) as (outer, outer_app),
    ):
        tunnels(app)
        tunnels(outer_app)
        reader, writer = await asyncio.open_connection("127.0.0.1", outer.port, ssl=asking)
        writer.write(handshake())
        await head(reader)
        writer.write(b"y" * 300_000)
        async with asyncio.timeout(10):
            assert await reader.read() == b"x" * 300_000
        assert heard == [b"y" * 300_000]
        await until(lambda: app.endings and outer_app.endings)
        assert (app.endings, outer_app.endings) == ([Ending.TUNNEL_ENDED], [Ending.TUNNEL_ENDED])
        writer.close()
