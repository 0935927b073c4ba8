"""The pool, with real sockets where connections are made."""

from __future__ import annotations

import asyncio
import socket

import pytest

from standins.http_engine import GET, OK, POST, Rig
from standins.http_sockets import raw_request, running
from standins.until import until
from vacancy_http import Ending, ProtocolFault, Upstream, UpstreamLimits


def test_the_host_field_names_the_upstream() -> None:
    assert Upstream("h", 8000).authority == b"h:8000"
    assert Upstream("h", 80).authority == b"h"
    assert Upstream("::1", 8000).authority == b"[::1]:8000"
    assert Upstream("h", 8000, authority=b"other").authority == b"other"


def test_no_more_connections_rest_than_the_limit() -> None:
    rig = Rig(upstream_limits=UpstreamLimits(max_idle=2))
    for _ in range(3):
        rig.connect(GET)
    for index in range(3):
        rig.link(index).send(OK)
    assert rig.upstream.idle_count == 2
    assert rig.link(2).transport.aborted


def test_close_closes_what_rests_and_keeps_nothing_more() -> None:
    rig = Rig()
    rig.connect(GET)
    rig.connect(GET)
    rig.link(0).send(OK)
    rig.upstream.close()
    assert rig.link(0).transport.aborted
    assert rig.upstream.idle_count == 0
    rig.link(1).send(OK)
    assert rig.upstream.idle_count == 0
    assert rig.app.endings == [Ending.COMPLETE] * 2


def test_what_rests_can_be_closed_alone() -> None:
    rig = Rig()
    rig.connect(GET)
    rig.connect(GET)
    rig.link(0).send(OK)
    rig.upstream.close_idle()
    assert rig.link(0).transport.aborted
    assert not rig.link(1).transport.aborted
    rig.link(1).send(OK)
    assert rig.upstream.idle_count == 1


class TestRetry:
    def used_once(self) -> Rig:
        rig = Rig()
        rig.connect(GET)
        rig.link().send(OK)
        return rig

    @pytest.mark.parametrize("by_reset", [False, True])
    def test_a_reused_connection_that_dies_before_any_byte_is_tried_once_more(self, by_reset: bool) -> None:
        rig = self.used_once()
        client = rig.connect(POST)
        assert len(rig.upstream.links) == 1
        if by_reset:
            rig.link().break_off(ConnectionResetError())
        else:
            rig.link().hang_up()
        assert len(rig.upstream.links) == 2
        assert rig.link().got().endswith(b"hello")
        rig.link().send(OK)
        assert client.got().endswith(b"ok")
        assert rig.app.endings == [Ending.COMPLETE] * 2

    def test_but_not_twice(self) -> None:
        rig = self.used_once()
        client = rig.connect(POST)
        rig.link().hang_up()
        rig.link().hang_up()
        assert len(rig.upstream.links) == 2
        assert rig.app.endings[-1] is Ending.UPSTREAM_DIED
        assert client.got().startswith(b"HTTP/1.1 502 ")

    def test_not_on_a_new_connection(self) -> None:
        rig = Rig()
        client = rig.connect(POST)
        rig.link().hang_up()
        assert len(rig.upstream.links) == 1
        assert rig.app.endings == [Ending.UPSTREAM_DIED]
        assert client.got().startswith(b"HTTP/1.1 502 ")

    def test_not_after_a_byte_of_the_response(self) -> None:
        rig = self.used_once()
        rig.connect(POST)
        rig.link().send(b"H")
        rig.link().hang_up()
        assert len(rig.upstream.links) == 1
        assert rig.app.endings[-1] is Ending.UPSTREAM_DIED

    def test_a_retry_that_finds_nobody_still_counts_as_died(self) -> None:
        rig = self.used_once()
        rig.connect(POST)
        rig.upstream.connects = False
        rig.link(0).hang_up()
        assert rig.app.endings[-1] is Ending.UPSTREAM_DIED


@pytest.mark.component
async def test_nobody_listens_there() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    async with running(Upstream("127.0.0.1", port)) as (listener, app):
        reply = await raw_request(listener.port, GET)
        assert reply.startswith(b"HTTP/1.1 503 ")
        assert app.endings == [Ending.UPSTREAM_UNREACHABLE]
        assert app.faults == [(ProtocolFault.UPSTREAM_UNREACHABLE, "connection refused")], "not where it is"


@pytest.mark.component
async def test_a_name_that_does_not_exist() -> None:
    async with running(Upstream("nowhere.invalid", 80)) as (listener, app):
        await raw_request(listener.port, GET)
        assert app.endings == [Ending.UPSTREAM_UNREACHABLE]
        assert app.faults == [(ProtocolFault.UPSTREAM_UNREACHABLE, "its name is not known")]


@pytest.mark.component
async def test_a_connection_that_is_being_made_can_be_cancelled() -> None:
    # 192.0.2.0/24 is for documentation: nothing answers there, or there is no route at all.
    async with running(Upstream("192.0.2.1", 80)) as (listener, app):
        _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(GET)
        await until(lambda: app.seen)
        writer.close()
        await until(lambda: app.endings)
        assert app.endings[0] in {Ending.CLIENT_GONE, Ending.UPSTREAM_UNREACHABLE}
