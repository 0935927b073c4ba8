"""Heads of a client's connection: order, limits, times."""

from __future__ import annotations

import pytest

from standins.http_engine import GET, OK, POST, Rig
from vacancy_http import Ending, ListenerLimits, ProtocolFault, Reply

FINE = Reply(200, (), b"fine")


def test_a_pipelined_second_waits_for_the_reply_to_the_first() -> None:
    rig = Rig()
    client = rig.connect(POST + GET)
    assert len(rig.app.seen) == 1
    rig.link().send(OK)
    assert len(rig.app.seen) == 2
    assert client.got().count(b"HTTP/1.1") == 1
    rig.link().send(OK)
    assert client.got().count(b"HTTP/1.1") == 1
    assert len(rig.upstream.links) == 1


def test_a_thousand_pipelined_requests_do_not_nest() -> None:
    rig = Rig()
    rig.app.on_head = lambda x: x.respond(FINE)
    client = rig.connect()
    client.send(GET * 1900)
    assert client.got().count(b"fine") == 1900


def test_of_many_requests_at_once_a_few_are_answered_in_one_turn() -> None:
    rig = Rig()
    rig.app.on_head = lambda x: x.respond(FINE)
    client = rig.connect()
    client.protocol.data_received(GET * 1900)
    assert client.got().count(b"fine") < 100
    assert not client.transport.reading
    rig.loop.settle()
    assert client.got().count(b"fine") > 1800
    assert client.transport.reading


def test_no_reply_is_made_for_who_does_not_take_the_ones_before() -> None:
    rig = Rig()
    rig.app.on_head = lambda x: x.respond(Reply(200, (), b"x" * 1000))
    client = rig.connect()
    client.transport.clogged = True
    for _ in range(10):
        if client.transport.reading:
            client.send(GET * 500)
    assert client.transport.unsent < 200_000
    assert not client.transport.reading
    client.transport.clogged = False
    client.transport.take(1 << 20)
    rig.loop.settle()
    assert client.got().count(b"HTTP/1.1 200") == 500
    assert client.transport.reading


def test_a_request_like_the_one_before_waits_for_a_client_that_takes_nothing_too() -> None:
    rig = Rig()
    rig.app.on_head = lambda x: x.respond(Reply(200, (), b"x" * 100_000))
    client = rig.connect(POST)
    client.transport.clogged = True
    for _ in range(4):
        client.send(POST)
    assert len(rig.app.seen) == 2
    client.transport.take(1 << 20)
    assert len(rig.app.seen) == 3


def test_who_takes_nothing_and_sends_ahead_is_cut_after_the_stall_limit() -> None:
    rig = Rig()
    rig.app.on_head = lambda x: x.respond(Reply(200, (), b"x" * 1000))
    client = rig.connect()
    client.transport.clogged = True
    client.send(GET * 500)
    rig.loop.advance(61)
    assert client.transport.aborted
    assert rig.listener.connection_count == 0


def test_a_head_may_come_byte_by_byte() -> None:
    rig = Rig()
    client = rig.connect()
    for byte in POST:
        client.send(bytes([byte]))
    assert rig.app.bodies == [b"hello"]


def test_who_sends_ahead_is_not_read_until_it_is_its_turn() -> None:
    rig = Rig(ListenerLimits(max_head_bytes=1000))
    client = rig.connect(GET)
    client.send(GET * 40)
    assert not client.transport.reading
    for _ in range(40):
        rig.link().send(OK)
    assert client.transport.reading
    assert client.got().count(b"HTTP/1.1") == 40


def test_a_held_back_request_with_a_body_is_read_on() -> None:
    rig = Rig(ListenerLimits(max_head_bytes=1000))
    client = rig.connect(GET)
    client.send(b"POST /x HTTP/1.1\r\nhost: p\r\ncontent-length: 5000\r\n\r\n" + b"a" * 2000)
    assert not client.transport.reading
    rig.link().send(OK)
    assert client.transport.reading
    client.send(b"a" * 3000)
    assert rig.app.bodies == [b"a" * 5000]


def test_close_is_honoured() -> None:
    rig = Rig()
    rig.app.on_head = lambda x: x.respond(FINE)
    client = rig.connect(b"GET / HTTP/1.1\r\nhost: p\r\nconnection: close\r\n\r\n")
    assert b"connection: close\r\n" in client.got()
    assert client.transport.closed


def test_head_gets_the_length_of_an_own_reply_but_not_its_body() -> None:
    rig = Rig()
    rig.app.on_head = lambda x: x.respond(FINE)
    client = rig.connect(b"HEAD / HTTP/1.1\r\nhost: p\r\n\r\n")
    assert client.got() == b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"


class TestMalformed:
    def test_is_answered_and_the_connection_ends(self) -> None:
        rig = Rig()
        client = rig.connect(b"GET / HTTP/1.1\r\n\r\n" + GET)
        out = client.got()
        assert out.startswith(b"HTTP/1.1 400 ")
        assert b"connection: close\r\n" in out
        assert client.transport.eof
        assert rig.app.seen == []
        assert rig.app.endings == []
        assert rig.listener.counters.malformed == 1
        client.send(GET)
        assert rig.app.seen == []

    def test_what_cannot_become_a_head_is_refused_at_once(self) -> None:
        for junk in (b"\x16\x03\x01\x02", b"GET / HTTP/1.1\n", b" GET", b"\r\n", b"G\0"):
            rig = Rig()
            assert rig.connect(junk).got().startswith(b"HTTP/1.1 400 ")

    @pytest.mark.parametrize("complete", [False, True])
    def test_a_head_over_the_limit(self, complete: bool) -> None:
        rig = Rig()
        head = b"GET / HTTP/1.1\r\nhost: p\r\nx: " + b"a" * 65536 + (b"\r\n\r\n" if complete else b"")
        client = rig.connect()
        for start in range(0, len(head), 10_000):
            client.send(head[start : start + 10_000])
        assert client.got().startswith(b"HTTP/1.1 431 ")
        assert rig.app.faults[0][0] is ProtocolFault.HEAD_TOO_LARGE

    def test_a_head_at_the_limit_is_served(self) -> None:
        rig = Rig()
        start = b"GET / HTTP/1.1\r\nhost: p\r\nx: "
        rig.connect(start + b"a" * (65536 - len(start) - 4) + b"\r\n\r\n")
        assert len(rig.app.seen) == 1

    @pytest.mark.parametrize(("fields", "served"), [(100, True), (101, False)])
    def test_the_number_of_fields(self, fields: int, served: bool) -> None:
        rig = Rig()
        extra = b"".join(b"x%d: y\r\n" % i for i in range(fields - 1))
        client = rig.connect(b"GET / HTTP/1.1\r\nhost: p\r\n" + extra + b"\r\n")
        assert bool(rig.app.seen) is served
        assert client.got().startswith(b"HTTP/1.1 431 ") is not served


class TestTimes:
    def test_a_head_that_does_not_come_is_408(self) -> None:
        rig = Rig()
        client = rig.connect(GET[:10])
        rig.loop.advance(9.9)
        assert client.got() == b""
        rig.loop.advance(0.7)
        assert client.got().startswith(b"HTTP/1.1 408 ")

    def test_trickling_does_not_extend_it(self) -> None:
        rig = Rig()
        client = rig.connect(GET[:10])
        for _ in range(11):
            rig.loop.advance(1)
            if not client.transport.eof:
                client.send(b"a")
        assert client.got().startswith(b"HTTP/1.1 408 ")

    def test_the_first_head_has_its_time_from_the_opening_of_the_connection(self) -> None:
        rig = Rig()
        client = rig.connect()
        rig.loop.advance(6)
        client.send(GET[:10])
        rig.loop.advance(4.6)
        assert client.got().startswith(b"HTTP/1.1 408 ")

    def test_a_connection_without_a_byte_is_closed_without_a_word(self) -> None:
        rig = Rig()
        client = rig.connect()
        rig.loop.advance(10.6)
        assert client.transport.closed
        assert client.got() == b""
        assert rig.listener.connection_count == 0

    def test_between_requests_the_keep_alive_limit_counts_instead(self) -> None:
        rig = Rig()
        rig.app.on_head = lambda x: x.respond(FINE)
        client = rig.connect(GET)
        rig.loop.advance(74)
        assert not client.transport.is_closing()
        client.send(GET[:10])
        rig.loop.advance(9)
        client.send(GET[10:])
        assert client.got().count(b"fine") == 2
        rig.loop.advance(76)
        assert client.transport.closed

    def test_a_later_head_has_the_header_limit_from_its_first_byte(self) -> None:
        rig = Rig()
        rig.app.on_head = lambda x: x.respond(FINE)
        client = rig.connect(GET)
        rig.loop.advance(60)
        client.send(GET[:10])
        rig.loop.advance(10.6)
        assert b" 408 " in client.got()

    def test_none_of_them_touches_a_reply_that_is_still_produced(self) -> None:
        rig = Rig()
        client = rig.connect(POST)
        rig.loop.advance(3600)
        rig.link().send(OK)
        assert client.got().endswith(b"ok")
        assert rig.app.endings == [Ending.COMPLETE]

    def test_a_connection_that_lingers_is_closed_in_the_end(self) -> None:
        rig = Rig()
        client = rig.connect(b"bad\n")
        rig.loop.advance(20.6)
        assert client.transport.aborted
        assert rig.listener.connection_count == 0
        assert rig.loop.timers == 0
