"""A connection to an upstream: nothing of one exchange in the next."""

from __future__ import annotations

import pytest

from standins.http_engine import GET, OK, POST, Client, Rig
from vacancy_http import Body, Ending, UpstreamLimits


def exchanged(rig: Rig, data: bytes = GET, reply: bytes = OK) -> Client:
    client = rig.connect(data)
    rig.link().send(reply)
    return client


class TestDirty:
    """Case A03: a stray `217` line after a complete reply must not become the next reply's status line."""

    def test_bytes_that_come_with_the_reply_end_the_connection(self) -> None:
        rig = Rig()
        client = exchanged(rig, GET, OK + b"217\r\ndata: x\r\n")
        assert client.got().endswith(b"\r\n\r\nok")
        assert rig.app.endings == [Ending.COMPLETE]
        assert rig.upstream.idle_count == 0
        assert rig.link().transport.aborted

    def test_bytes_after_a_last_chunk_do_too(self) -> None:
        rig = Rig()
        exchanged(rig, GET, b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n217\r\n")
        assert rig.app.endings == [Ending.COMPLETE]
        assert rig.upstream.idle_count == 0

    def test_bytes_that_come_later_do_too(self) -> None:
        rig = Rig()
        exchanged(rig)
        assert rig.upstream.idle_count == 1
        rig.link().send(b"217\r\ndata: x\r\n")
        assert rig.upstream.idle_count == 0
        assert rig.link().transport.aborted
        client = exchanged(rig)
        assert len(rig.upstream.links) == 2
        assert client.got().endswith(b"ok")

    @pytest.mark.parametrize("waiting", [True, False])
    def test_bytes_that_the_loop_has_not_read_yet_are_seen_before_reuse(self, waiting: bool) -> None:
        rig = Rig()
        exchanged(rig)
        rig.upstream.links[0]._poll = lambda _ms: [(3, 1)] if waiting else []
        exchanged(rig)
        assert len(rig.upstream.links) == (2 if waiting else 1)


class TestReuse:
    def test_last_in_first_out(self) -> None:
        rig = Rig()
        for _ in range(3):
            rig.connect(GET)
        for index in (1, 0, 2):
            rig.link(index).send(OK)
        rig.connect(GET)
        rig.connect(GET)
        assert [link.exchange is not None for link in rig.upstream.links] == [True, False, True]

    def test_not_after_close_or_an_older_version(self) -> None:
        for head in (b"HTTP/1.1 200 OK\r\nconnection: close\r\n", b"HTTP/1.0 200 OK\r\n"):
            rig = Rig()
            exchanged(rig, GET, head + b"content-length: 0\r\n\r\n")
            assert rig.upstream.idle_count == 0
            assert rig.link().transport.aborted

    def test_an_older_version_may_ask_for_it(self) -> None:
        rig = Rig()
        exchanged(rig, GET, b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n")
        assert rig.upstream.idle_count == 1

    def test_one_that_the_upstream_closed_leaves_the_pool(self) -> None:
        rig = Rig()
        exchanged(rig)
        rig.link().hang_up()
        assert rig.upstream.idle_count == 0

    def test_one_that_rests_too_long_is_closed(self) -> None:
        rig = Rig()
        exchanged(rig)
        rig.loop.advance(29)
        assert rig.upstream.idle_count == 1
        rig.loop.advance(2)
        assert rig.upstream.idle_count == 0
        assert rig.link().transport.aborted

    def test_not_before_the_request_was_sent_whole(self) -> None:
        rig = Rig()
        rig.app.on_head = lambda x: x.forward(
            rig.upstream,
            target=b"/",
            drop=frozenset(),
            add=(),
            body=b"x" * 1_000_000,
        )
        client = rig.connect()
        rig.upstream.waits = True
        client.send(GET)
        link = rig.upstream.links[0]
        rig.upstream.waits = False
        transport = clogged(rig, link)
        assert len(transport.out) < 600_000
        rig.link().send(OK)  # answers before it has read all
        assert client.got().endswith(b"ok")
        assert rig.upstream.idle_count == 0
        assert transport.aborted
        assert rig.app.endings == [Ending.COMPLETE]


def clogged(rig: Rig, link: object):
    from standins.http_engine import FakeTransport

    transport = FakeTransport(rig.loop, link)  # type: ignore[arg-type]
    transport.clogged = True
    link.connection_made(transport)  # type: ignore[attr-defined]
    rig.loop.settle()
    return transport


class TestLargeBodies:
    def sent(self, payload: bytes | Body) -> Rig:
        rig = Rig()
        rig.app.on_head = lambda x: x.forward(
            rig.upstream,
            target=b"/",
            drop=frozenset(),
            add=(),
            body=payload,
        )
        rig.connect(GET)
        return rig

    def test_leave_in_slices_one_a_turn(self) -> None:
        payload = bytes(range(256)) * 4096
        rig = self.sent(payload)
        assert rig.link().got().endswith(b"\r\n\r\n" + payload)
        assert rig.link().transport.writes == 1 + 4
        rig.link().send(OK)
        assert rig.upstream.idle_count == 1

    def test_wait_while_the_upstream_takes_nothing(self) -> None:
        rig = Rig()
        rig.upstream.waits = True
        payload = b"x" * 1_000_000
        rig.app.on_head = lambda x: x.forward(
            rig.upstream,
            target=b"/",
            drop=frozenset(),
            add=(),
            body=payload,
        )
        rig.connect(GET)
        transport = clogged(rig, rig.upstream.links[0])
        assert len(transport.out) < 300_000
        rig.loop.advance(10)
        assert len(transport.out) < 300_000
        while transport.unsent:
            transport.take(1 << 20)
            rig.loop.settle()
        assert transport.out.endswith(payload)

    def test_an_abort_stops_them(self) -> None:
        rig = Rig()
        rig.upstream.waits = True
        rig.connect(POST)
        rig.upstream.links[0].abort()
        assert len(rig.loop._soon) == 0


class TestHeads:
    def test_may_come_in_pieces(self) -> None:
        rig = Rig()
        client = rig.connect(GET)
        for byte in OK:
            rig.link().send(bytes([byte]))
        assert client.got() == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

    def test_interim_responses_are_consumed(self) -> None:
        rig = Rig()
        client = rig.connect(GET)
        rig.link().send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK[:9])
        assert client.got() == b""
        rig.link().send(OK[9:])
        assert client.got() == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

    @pytest.mark.parametrize(
        "reply",
        [
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
            b"217\r\ndata: x\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
            b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\ncontent-length: 0\n\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nx: y\r\n folded\r\n\r\n",
            b"HTTP/2.0 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            b"HTTP/1.1 200 OK\r\nx: " + b"a" * 70_000,
            b"HTTP/1.1 100 Continue\r\n\r\n" * 3000,
        ],
        ids=range(12),
    )
    def test_that_are_invalid_are_502_and_the_connection_is_closed(self, reply: bytes) -> None:
        rig = Rig()
        client = rig.connect(GET)
        rig.link().send(reply)
        assert rig.app.endings == [Ending.UPSTREAM_INVALID]
        assert client.got().startswith(b"HTTP/1.1 502 ")
        assert rig.link().transport.aborted
        assert not client.transport.is_closing()

    def test_that_do_not_come_are_a_timeout_where_one_is_set(self) -> None:
        rig = Rig(upstream_limits=UpstreamLimits(response_head_s=7))
        client = rig.connect(GET)
        rig.loop.advance(6.9)
        assert rig.app.endings == []
        rig.loop.advance(0.6)
        assert rig.app.endings == [Ending.UPSTREAM_TIMEOUT]
        assert client.got().startswith(b"HTTP/1.1 504 ")

    def test_the_timeout_does_not_count_for_the_body(self) -> None:
        rig = Rig(upstream_limits=UpstreamLimits(response_head_s=7))
        rig.connect(GET)
        rig.link().send(OK[:-1])
        rig.loop.advance(600)
        rig.link().send(OK[-1:])
        assert rig.app.endings == [Ending.COMPLETE]


def test_a_connection_that_is_not_accepted_in_time_is_unreachable() -> None:
    rig = Rig()
    rig.upstream.waits = True
    client = rig.connect(GET)
    rig.loop.advance(4.9)
    assert rig.app.endings == []
    rig.loop.advance(0.6)
    assert rig.app.endings == [Ending.UPSTREAM_UNREACHABLE]
    assert client.got().startswith(b"HTTP/1.1 503 ")


def test_a_connection_made_for_nobody_is_closed() -> None:
    rig = Rig()
    rig.upstream.waits = True
    rig.connect(GET).hang_up()
    transport = clogged(rig, rig.upstream.links[0])
    assert transport.aborted
    assert transport.out == b""


def test_it_is_never_half_closed() -> None:
    rig = Rig()
    client = exchanged(rig, POST)
    client.hang_up()
    assert not rig.link().transport.eof
