"""The opening handshake of a WebSocket (RFC 6455), both halves of it. Pure.

Invariant: what becomes a tunnel was asked for and agreed to without a second reading. Behind a 101 nobody
looks at bytes any more, so a server that took the request for a plain one, or a client that did not ask for a
tunnel, could smuggle requests past every rule. Rejected: to forward the handshake and let the server judge.
Its idea of a handshake decides then what the proxy no longer sees.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha1
from typing import TYPE_CHECKING, Final

from vacancy_http.request_parser import connection_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_http.request_parser import RequestHead

SWITCH: Final = ((b"connection", b"Upgrade"), (b"upgrade", b"websocket"))
"""The hop-by-hop fields that each side of a tunnel is sent."""

_MAGIC: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
_KEY: Final = re.compile(rb"[A-Za-z0-9+/]{21}[AQgw]==")  # 16 bytes
_VERSION: Final = b"13"


def asks_for_websocket(upgrade: bytes | None) -> bool:
    """Whether the value of an Upgrade field names `websocket`."""
    return upgrade is not None and b"websocket" in connection_tokens(upgrade)


def handshake_fault(head: RequestHead, *, has_body: bool) -> str | None:
    """Why this request, which asks for a WebSocket, is no valid handshake; None: it is one.

    `has_body` is the exchange's: heads that differ in the length of their body alone may share one object.
    Source: RFC 6455, 4.2.1.
    """
    if head.method != "GET" or not head.minor:
        return "a WebSocket handshake is a GET of HTTP/1.1"
    if has_body:
        return "a WebSocket handshake has no body"
    return _fields_fault(head.fields)


def _fields_fault(fields: Mapping[bytes, bytes]) -> str | None:
    options = connection_tokens(fields.get(b"connection", b""))
    if not asks_for_websocket(fields.get(b"upgrade")) or b"upgrade" not in options:
        return "a WebSocket handshake has `Upgrade: websocket` and `Connection: Upgrade`"
    if any(option.startswith(b"sec-websocket-") for option in options):
        return "the Connection field names a field of the WebSocket handshake"
    if _KEY.fullmatch(fields.get(b"sec-websocket-key", b"")) is None:
        return "a WebSocket handshake has one Sec-WebSocket-Key: 16 bytes in base64"
    if fields.get(b"sec-websocket-version") != _VERSION:
        return "the WebSocket version here is 13: send one `Sec-WebSocket-Version: 13`"
    return None


def accept_of(key: bytes) -> bytes:
    """The Sec-WebSocket-Accept that answers `key`."""
    return b64encode(sha1(key + _MAGIC, usedforsecurity=False).digest())


def answer_fault(raw: bytes, key: bytes) -> str | None:
    """Why `raw`, the head of a 101 that was found well-formed, does not agree to `key`; None: it does.

    Source: RFC 6455, 4.1.
    """
    fields: dict[bytes, list[bytes]] = {}
    for line in raw.split(b"\r\n")[1:-2]:
        name, _, value = line.partition(b":")
        fields.setdefault(name.lower(), []).append(value.strip())
    if fields.get(b"sec-websocket-accept") != [accept_of(key)]:
        return "its Sec-WebSocket-Accept does not answer the key"
    if [v.lower() for v in fields.get(b"upgrade", ())] != [b"websocket"]:
        return "it switches to something else than a WebSocket"
    if b"upgrade" not in connection_tokens(b",".join(fields.get(b"connection", ()))):
        return "its Connection field does not say Upgrade"
    return None
