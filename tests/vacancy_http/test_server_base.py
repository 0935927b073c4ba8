"""Ends of a client's connection: stall, leaving while it is not read, the listener's close."""

from __future__ import annotations

from typing import TYPE_CHECKING

from standins.http_engine import GET, Rig
from vacancy_http import Ending, ListenerLimits, server_base

if TYPE_CHECKING:
    import pytest

STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
BIG = b"20000\r\n" + b"x" * 0x20000 + b"\r\n"


def test_a_client_that_takes_nothing_is_cut_after_the_stall_limit() -> None:
    rig = Rig()
    client = rig.connect(GET)
    client.transport.clogged = True
    rig.link().send(STREAM + BIG)
    rig.loop.advance(59)
    assert rig.app.endings == []
    rig.loop.advance(2)
    assert rig.app.endings == [Ending.CLIENT_STALLED]
    assert client.transport.aborted
    assert rig.link().transport.aborted
    assert rig.listener.connection_count == 0


def test_a_client_that_takes_a_little_is_not() -> None:
    rig = Rig()
    client = rig.connect(GET)
    client.transport.clogged = True
    rig.link().send(STREAM + BIG)
    for _ in range(5):
        rig.loop.advance(50)
        client.transport.take(100)
    assert rig.app.endings == []
    client.transport.take(1 << 20)
    rig.loop.advance(600)
    assert rig.app.endings == []


def test_a_last_reply_that_is_never_taken_does_not_hold_the_connection_for_ever() -> None:
    rig = Rig()
    client = rig.connect(b"GET / HTTP/1.0\r\n\r\n")
    client.transport.clogged = True
    rig.link().send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    assert client.transport.closed
    rig.loop.advance(61)
    assert client.transport.aborted
    assert rig.listener.connection_count == 0


def test_who_leaves_while_reading_is_paused_is_noticed_within_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig(ListenerLimits(max_head_bytes=1000))
    client = rig.connect(GET)
    client.send(GET * 40)
    assert not client.transport.reading
    rig.loop.advance(5)
    assert rig.app.endings == []
    monkeypatch.setattr(server_base, "peer_closed", lambda _transport: True)
    rig.loop.advance(1)
    assert rig.app.endings == [Ending.CLIENT_GONE]
    assert rig.link().transport.aborted


def test_a_fin_between_requests_just_closes() -> None:
    rig = Rig()
    client = rig.connect()
    client.hang_up()
    assert client.transport.closed
    assert rig.app.endings == []
    assert rig.listener.connection_count == 0


def test_an_exchange_ends_once_however_the_connection_goes() -> None:
    rig = Rig()
    client = rig.connect(GET)
    client.hang_up()
    client.break_off()
    rig.link().break_off()
    assert rig.app.endings == [Ending.CLIENT_GONE]


def test_a_listener_that_closes_ends_idle_connections_and_lets_replies_out() -> None:
    rig = Rig()
    idle, busy = rig.connect(), rig.connect(GET)
    rig.listener.closing = True
    idle.protocol.shut()
    busy.protocol.shut()
    assert idle.transport.closed
    assert not busy.transport.is_closing()
    rig.link().send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    assert b"connection: close" in busy.got()
    assert busy.transport.closed
    assert rig.app.endings == [Ending.COMPLETE]


def test_a_cut_ends_the_exchange_as_cancelled() -> None:
    rig = Rig()
    client = rig.connect(GET)
    client.protocol.cut()
    assert rig.app.endings == [Ending.CANCELLED]
    assert client.transport.aborted
    assert rig.link().transport.aborted
