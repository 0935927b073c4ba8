"""The listener over real sockets, on the standard loop and on uvloop."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import ssl
import sys
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from standins.http_engine import GET, OK, Rig
from standins.http_sockets import (
    ScriptedUpstream,
    UpstreamPeer,
    client,
    on_each_loop,
    raw_request,
    read_reply,
    running,
)
from standins.until import until
from vacancy_http import Ending, ListenerLimits, Reply, Upstream

if TYPE_CHECKING:
    from pathlib import Path

POST = b"POST /x HTTP/1.1\r\nhost: p\r\ncontent-length: 5\r\n\r\nhello"
STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
MIB = 1 << 20


async def answer(peer: UpstreamPeer) -> None:
    while True:
        await peer.request()
        peer.write(OK)


class Gone:
    """An upstream that answers with `sent` and nothing more, and sees whether it is left."""

    def __init__(self, sent: bytes) -> None:
        self.sent = sent
        self.reached = asyncio.Event()
        self.left = asyncio.Event()

    async def __call__(self, peer: UpstreamPeer) -> None:
        await peer.request()
        peer.write(self.sent)
        self.reached.set()
        if await peer.closed(10):
            self.left.set()


@on_each_loop
async def test_requests_on_one_connection_share_one_to_the_upstream() -> None:
    async with (
        ScriptedUpstream(answer) as upstream,
        running(Upstream("127.0.0.1", upstream.port)) as (listener, app),
    ):
        async with client(listener.port) as (reader, writer):
            for _ in range(20):
                writer.write(POST)
                assert (await read_reply(reader)).endswith(b"ok")
        assert upstream.connections == 1
        await until(lambda: listener.connection_count == 0)
        assert app.endings == [Ending.COMPLETE] * 20
        assert listener.counters.accepted == 1
        assert listener.counters.requests == 20


@pytest.mark.parametrize("sent", [b"", STREAM + b"2\r\nab\r\n"], ids=["before the head", "mid-stream"])
@pytest.mark.parametrize("request_bytes", [GET, POST], ids=["GET", "POST"])
@on_each_loop
async def test_a_client_that_leaves_takes_the_upstream_with_it_within_a_second(
    sent: bytes,
    request_bytes: bytes,
) -> None:
    gone = Gone(sent)
    async with (
        ScriptedUpstream(gone) as upstream,
        running(Upstream("127.0.0.1", upstream.port)) as (listener, app),
    ):
        async with client(listener.port) as (reader, writer):
            writer.write(request_bytes)
            await gone.reached.wait()
            if sent:
                await reader.readuntil(b"ab")
        async with asyncio.timeout(1):
            await gone.left.wait()
        assert app.endings == [Ending.CLIENT_GONE]
        assert app.budget.used == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a FIN behind unread bytes")
@on_each_loop
async def test_also_where_it_is_not_read_because_it_sent_ahead() -> None:
    gone = Gone(b"")
    limits = ListenerLimits(max_head_bytes=1000)
    async with (
        ScriptedUpstream(gone) as upstream,
        running(Upstream("127.0.0.1", upstream.port), limits) as (listener, app),
    ):
        async with client(listener.port) as (_, writer):
            writer.write(GET)
            await gone.reached.wait()
            writer.write(GET * 2000)
            await until(lambda: any(c.held for c in listener._connections))
        async with asyncio.timeout(1.5):
            await gone.left.wait()
        assert app.endings == [Ending.CLIENT_GONE]


@on_each_loop
async def test_a_cut_stream_is_a_reset_for_its_client() -> None:
    async def invalid(peer: UpstreamPeer) -> None:
        await peer.request()
        peer.write(STREAM + b"2\r\nab\r\n")
        await asyncio.sleep(0.1)
        peer.write(b"junk\r\n")

    async with (
        ScriptedUpstream(invalid) as upstream,
        running(Upstream("127.0.0.1", upstream.port)) as (listener, app),
    ):
        for version in (b"1.0", b"1.1"):
            async with client(listener.port) as (reader, writer):
                writer.write(b"GET / HTTP/" + version + b"\r\nhost: p\r\n\r\n")
                await reader.readuntil(b"ab")
                with pytest.raises(ConnectionResetError):
                    await reader.read()
        assert app.endings == [Ending.UPSTREAM_INVALID] * 2


@on_each_loop
async def test_a_stray_line_after_a_reply_never_reaches_the_next() -> None:
    """Case A03."""

    async def stray(peer: UpstreamPeer) -> None:
        while True:
            await peer.request()
            peer.write(OK)
            await asyncio.sleep(0.01)
            peer.write(b"217\r\ndata: x\r\n")

    async with (
        ScriptedUpstream(stray) as upstream,
        running(Upstream("127.0.0.1", upstream.port)) as (listener, app),
    ):
        async with client(listener.port) as (reader, writer):
            for _ in range(5):
                writer.write(GET)
                assert (await read_reply(reader)).endswith(b"\r\n\r\nok")
                await asyncio.sleep(0.05)
        assert upstream.connections == 5
        assert app.endings == [Ending.COMPLETE] * 5


@on_each_loop
async def test_a_reused_connection_that_the_upstream_drops_on_the_next_request_is_retried() -> None:
    async def once(peer: UpstreamPeer) -> None:
        await peer.request()
        peer.write(OK)
        await peer.reader.read(1)

    async with (
        ScriptedUpstream(once) as upstream,
        running(Upstream("127.0.0.1", upstream.port)) as (listener, app),
    ):
        async with client(listener.port) as (reader, writer):
            for _ in range(5):
                writer.write(POST)
                assert (await read_reply(reader)).endswith(b"ok")
        assert upstream.connections == 5
        assert app.endings == [Ending.COMPLETE] * 5


@on_each_loop
async def test_500_slow_clients_do_not_keep_a_good_one_out() -> None:
    async with (
        ScriptedUpstream(answer) as upstream,
        running(Upstream("127.0.0.1", upstream.port)) as (listener, _),
    ):
        slow = []
        for number in range(500):
            _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(b"GET / HT")
            slow.append(writer)
            if number % 50 == 49:
                async with asyncio.timeout(2):
                    assert (await raw_request(listener.port, POST)).endswith(b"ok")
        assert listener.connection_count <= 256
        assert listener.counters.evicted >= 500 - 256
        assert listener.counters.turned_away == 0
        for writer in slow:
            writer.transport.abort()


@on_each_loop
async def test_a_full_listener_turns_the_new_one_away_and_keeps_the_old() -> None:
    gone = Gone(b"")
    limits = ListenerLimits(max_connections=3)
    async with (
        ScriptedUpstream(gone) as upstream,
        running(Upstream("127.0.0.1", upstream.port), limits) as (listener, app),
        contextlib.AsyncExitStack() as stack,
    ):
        for _ in range(3):
            _, writer = await stack.enter_async_context(client(listener.port))
            writer.write(GET)
        await until(lambda: len(app.seen) == 3)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await raw_request(listener.port, GET)
        assert listener.counters.turned_away == 1
        assert app.endings == []


def test_the_one_that_waits_longest_makes_room() -> None:
    rig = Rig(ListenerLimits(max_connections=3))
    rig.app.on_head = lambda x: x.respond(Reply(200, (), b""))
    served = rig.connect()
    rig.loop.advance(1)
    slow = rig.connect(GET[:5])
    rig.loop.advance(1)
    served.send(GET)
    busy = rig.connect(b"POST / HTTP/1.1\r\nhost: p\r\ncontent-length: 5\r\n\r\n")
    rig.connect()
    assert slow.transport.aborted
    assert not served.transport.is_closing()
    assert not busy.transport.is_closing()


def test_clients_that_send_refused_bodies_slowly_make_room_too() -> None:
    rig = Rig(ListenerLimits(max_connections=2))
    rig.app.on_head = lambda x: x.respond(Reply(401, (), b""))
    slow = rig.connect(b"POST / HTTP/1.1\r\nhost: p\r\ncontent-length: 5000\r\n\r\n{")
    rig.loop.advance(1)
    rig.connect(b"POST / HTTP/1.1\r\nhost: p\r\ncontent-length: 5000\r\n\r\n{")
    rig.app.on_head = rig.app.collect_or_forward
    good = rig.connect(GET)
    rig.link().send(OK)
    assert good.got().endswith(b"ok")
    assert slow.transport.aborted
    assert rig.listener.counters.turned_away == 0


def test_a_last_reply_under_way_makes_room_only_where_nobody_waits_for_a_head() -> None:
    rig = Rig(ListenerLimits(max_connections=2))
    rig.app.on_head = lambda x: x.respond(Reply(401, (), b"no"))
    taking = rig.connect()
    taking.transport.clogged = True
    taking.send(b"GET / HTTP/1.0\r\n\r\n")
    rig.loop.advance(1)
    idle = rig.connect()
    third = rig.connect()
    assert idle.transport.aborted
    assert not taking.transport.aborted
    third.send(b"POST / HTTP/1.1\r\nhost: p\r\ncontent-length: 5\r\n\r\n")
    third.transport.clogged = True
    third.send(b"abcdeGET / HTTP/1.0\r\n\r\n")
    rig.connect()
    assert taking.transport.aborted


@on_each_loop
async def test_refused_bodies_are_read_so_that_the_refusal_is_seen() -> None:
    limits = ListenerLimits(max_body_bytes=8 * MIB)
    async with running(Upstream("127.0.0.1", 1), limits) as (listener, app):
        app.on_head = lambda x: x.respond(Reply(401, (), b"denied"))
        async with client(listener.port) as (reader, writer):
            writer.write(b"POST / HTTP/1.1\r\nhost: p\r\ncontent-length: %d\r\n\r\n" % (15 * MIB))
            for _ in range(15):
                writer.write(bytes(MIB))
                await writer.drain()
            assert (await read_reply(reader)).startswith(b"HTTP/1.1 401 ")
            writer.write(GET)
            assert (await read_reply(reader)).startswith(b"HTTP/1.1 401 ")


class Self:
    """A self-signed certificate for 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "proxy")])
        now = datetime.datetime.now(datetime.UTC)
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        builder = builder.serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=1)).add_extension(
            address, critical=False
        )
        pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        (folder / "cert.pem").write_bytes(pem)
        (folder / "key.pem").write_bytes(private)
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        self.client = ssl.create_default_context(cafile=str(folder / "cert.pem"))


@on_each_loop
async def test_tls_on_the_listener_and_towards_an_upstream(tmp_path: Path) -> None:
    keys = Self(tmp_path)
    async with (
        ScriptedUpstream(answer) as plain,
        running(Upstream("127.0.0.1", plain.port), ssl=keys.server) as (inner, app),
    ):
        upstream = Upstream("127.0.0.1", inner.port, tls=keys.client)
        async with running(upstream, ssl=keys.server) as (outer, _):
            for _ in range(3):
                assert (await raw_request(outer.port, POST, keys.client)).endswith(b"ok")
            assert app.seen[0].is_tls
            assert inner.counters.accepted == 1  # the pool keeps a connection with TLS, too
            with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                await raw_request(outer.port, POST)


@on_each_loop
async def test_a_client_with_tls_that_leaves_is_noticed(tmp_path: Path) -> None:
    keys = Self(tmp_path)
    gone = Gone(STREAM)
    async with (
        ScriptedUpstream(gone) as plain,
        running(Upstream("127.0.0.1", plain.port), ssl=keys.server) as (
            listener,
            app,
        ),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=keys.client)
        writer.write(GET)
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()
        async with asyncio.timeout(1):
            await gone.left.wait()
        assert app.endings == [Ending.CLIENT_GONE]


@on_each_loop
async def test_close_waits_for_replies_and_then_does_not() -> None:
    gone = Gone(STREAM + b"2\r\nab\r\n")
    async with (
        ScriptedUpstream(gone) as upstream,
        running(Upstream("127.0.0.1", upstream.port)) as (listener, app),
    ):
        async with client(listener.port) as (reader, writer):
            writer.write(GET)
            await reader.readuntil(b"ab")
            loop = asyncio.get_running_loop()
            start = loop.time()
            await listener.close(0.3)
            assert loop.time() - start >= 0.25  # uvloop counts in milliseconds
            assert app.endings == [Ending.CANCELLED]
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", listener.port)


@on_each_loop
async def test_256_streams_are_cancelled_in_one_turn() -> None:
    peers: list[UpstreamPeer] = []
    left = 0

    async def stream(peer: UpstreamPeer) -> None:
        nonlocal left
        await peer.request()
        peer.write(STREAM + b"2\r\nab\r\n")
        peers.append(peer)
        if await peer.closed(10):
            left += 1

    async with (
        ScriptedUpstream(stream) as upstream,
        running(Upstream("127.0.0.1", upstream.port)) as (listener, app),
        contextlib.AsyncExitStack() as stack,
    ):
        for _ in range(256):
            reader, writer = await stack.enter_async_context(client(listener.port))
            writer.write(GET)
            await reader.readuntil(b"ab")
        loop = asyncio.get_running_loop()
        start = loop.time()
        for x in app.seen:
            x.cancel(Reply(503, (), b""))
        took = loop.time() - start
        assert app.endings == [Ending.CANCELLED] * 256
        assert all(x.link is None for x in app.seen)
        assert took < 0.5  # 3 to 10 ms; a slow machine has its time
        await until(lambda: left == 256)
