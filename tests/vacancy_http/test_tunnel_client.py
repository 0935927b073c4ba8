from __future__ import annotations

from standins.http_engine import POST
from standins.websocket_text import agreed, handshake, opened, tunnel_rig
from vacancy_http import Ending, ListenerLimits
from vacancy_http.states import Connection


def test_knows_the_listeners_limits() -> None:
    rig = tunnel_rig(limits=ListenerLimits(max_tunnels=1, tunnel_idle_s=7, write_stall_s=8))
    client = rig.connect().protocol
    assert (client.tunnels_full, client.tunnel_idle_s, client.write_stall_s) == (False, 7, 8)
    opened(rig)
    assert client.tunnels_full


def test_bytes_after_the_end_go_nowhere() -> None:
    rig = tunnel_rig()
    client = opened(rig)
    rig.link().hang_up()
    rig.link().got()
    client.protocol.data_received(b"late")
    assert rig.link().got() == b""


def test_a_connection_that_has_served_requests_may_become_a_tunnel() -> None:
    rig = tunnel_rig()
    tunnel, rig.app.on_head = rig.app.on_head, rig.app.collect_or_forward
    client = rig.connect(
        POST.replace(b"content-length: 5", b"transfer-encoding: chunked").replace(b"hello", b"")
    )
    client.send(b"5\r\nhello\r\n0\r\n\r\n")
    rig.link().send(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert client.protocol.state is Connection.IDLE
    rig.app.on_head = tunnel
    client.got()
    client.send(handshake())
    rig.link().send(agreed() + b"x")
    assert client.got().endswith(b"\r\n\r\nx")
    assert client.protocol.state is Connection.TUNNEL


def test_a_client_that_left_while_its_upstream_is_slow_is_noticed(monkeypatch) -> None:
    rig = tunnel_rig()
    client = opened(rig)
    rig.link().transport.clogged = True
    client.send(b"x" * 70_000)
    assert client.protocol.held
    monkeypatch.setattr("vacancy_http.server_base.peer_closed", lambda _transport: True)
    rig.loop.advance(1)
    assert rig.link().transport.aborted


class TestPressure:
    def test_of_a_client_that_takes_nothing_stops_the_upstream_then_ends_it(self) -> None:
        rig = tunnel_rig(limits=ListenerLimits(write_stall_s=60))
        client = opened(rig)
        server = rig.link()
        client.transport.clogged = True
        server.send(b"x" * 70_000)
        assert not server.transport.reading
        client.transport.take(60_000)
        assert server.transport.reading
        server.send(b"x" * 70_000)
        assert not server.transport.reading
        rig.loop.advance(59)
        assert rig.app.endings == []
        rig.loop.advance(2)
        assert rig.app.endings == [Ending.CLIENT_STALLED]
        assert client.transport.aborted
        assert server.transport.aborted

    def test_of_an_upstream_that_takes_nothing_stops_the_client_then_ends_it(self) -> None:
        rig = tunnel_rig(limits=ListenerLimits(write_stall_s=60))
        client = opened(rig)
        server = rig.link()
        server.transport.clogged = True
        client.send(b"x" * 70_000)
        assert not client.transport.reading
        rig.loop.advance(50)
        server.transport.take(1)  # slow is not stalled
        rig.loop.advance(50)
        assert rig.app.endings == []
        server.transport.take(60_000)
        assert client.transport.reading
        client.send(b"x" * 70_000)
        rig.loop.advance(61)
        assert rig.app.endings == [Ending.UPSTREAM_TIMEOUT]
        assert client.transport.aborted
        assert server.transport.aborted
        assert rig.listener.counters.tunnels == 0

    def test_is_known_of_before_it_opens(self) -> None:
        rig = tunnel_rig()
        client = rig.connect(handshake())
        client.transport.clogged = True
        rig.link().send(agreed() + b"x" * 70_000)
        assert not rig.link().transport.reading

    def test_by_early_bytes_is_pressure_too(self) -> None:
        rig = tunnel_rig()
        client = rig.connect(handshake() + b"x" * 70_000)
        server = rig.link()
        server.transport.clogged = True
        server.send(agreed())
        assert not client.transport.reading
