"""Handshakes of WebSockets as text, and a rig of the engine whose every request becomes a tunnel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from standins.http_engine import Rig
from vacancy_http.tunnel_handshake import accept_of

if TYPE_CHECKING:
    from standins.http_engine import Client
    from vacancy_http import Exchange

KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
FIELDS = {
    b"host": b"proxy",
    b"connection": b"keep-alive, Upgrade",
    b"upgrade": b"WebSocket",
    b"sec-websocket-key": KEY,
    b"sec-websocket-version": b"13",
}


def handshake(
    path: bytes = b"/ws", *, method: bytes = b"GET", minor: int = 1, **changes: bytes | None
) -> bytes:
    """A client's handshake; `changes` by name with underscores, None takes a field out."""
    fields: dict[bytes, bytes | None] = dict(FIELDS)
    fields |= {name.replace("_", "-").encode(): value for name, value in changes.items()}
    lines = b"".join(b"%b: %b\r\n" % (name, value) for name, value in fields.items() if value is not None)
    return b"%b %b HTTP/1.%d\r\n%b\r\n" % (method, path, minor, lines)


def agreed(key: bytes = KEY, more: bytes = b"") -> bytes:
    """A server's 101."""
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: %b\r\n%b\r\n" % (accept_of(key), more)
    )


def tunnel_rig(**limits: Any) -> Rig:
    """Every request is asked to become a tunnel."""
    rig = Rig(**limits)

    def tunnel(x: Exchange) -> None:
        x.tunnel(rig.upstream, target=x.target, drop=frozenset(), add=())

    rig.app.on_head = tunnel
    return rig


def opened(rig: Rig) -> Client:
    """A client whose tunnel is open; the heads on both sides are read."""
    client = rig.connect(handshake())
    server = rig.link()
    server.got()
    server.send(agreed())
    assert client.got().startswith(b"HTTP/1.1 101 ")
    return client
