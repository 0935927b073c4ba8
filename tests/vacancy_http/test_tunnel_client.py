from __future__ import annotations

from standins.http_engine import POST
from standins.websocket_text import agreed, handshake, opened, tunnel_rig
from vacancy_http import ListenerLimits
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
