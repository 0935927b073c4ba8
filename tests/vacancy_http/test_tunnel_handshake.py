from __future__ import annotations

import pytest

from standins.websocket_text import KEY, agreed, handshake
from vacancy_http.request_parser import parse_request_head
from vacancy_http.tunnel_handshake import accept_of, answer_fault, asks_for_websocket, handshake_fault


def fault(raw: bytes) -> str | None:
    head = parse_request_head(raw, 100)
    return handshake_fault(head, has_body=head.content_length > 0 or head.chunked)


@pytest.mark.parametrize(
    ("value", "asks"),
    [
        (b"websocket", True),
        (b"WebSocket", True),
        (b"h2c, websocket", True),
        (b"h2c", False),
        (b"websockets", False),
        (b"websocket/13", False),
        (None, False),
    ],
)
def test_which_upgrades_ask_for_a_websocket(value: bytes | None, asks: bool) -> None:
    assert asks_for_websocket(value) is asks


def test_the_answer_of_the_standard_to_the_key_of_the_standard() -> None:
    assert accept_of(b"dGhlIHNhbXBsZSBub25jZQ==") == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.mark.parametrize(
    "raw",
    [
        handshake(),
        handshake(b"/ws?clientId=a", connection=b"upgrade", upgrade=b"websocket"),
        handshake(upgrade=b"h2c, websocket", origin=b"http://proxy", cookie=b"a=b"),
        handshake(content_length=b"0"),
        handshake(sec_websocket_protocol=b"a, b", sec_websocket_extensions=b"permessage-deflate"),
    ],
)
def test_handshakes(raw: bytes) -> None:
    assert fault(raw) is None


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (handshake(method=b"POST"), "GET"),
        (handshake(method=b"HEAD"), "GET"),
        (handshake(minor=0), "HTTP/1.1"),
        (handshake(content_length=b"1"), "body"),
        (handshake(transfer_encoding=b"chunked"), "body"),
        (handshake(upgrade=None), "Upgrade"),
        (handshake(upgrade=b"h2c"), "Upgrade"),
        (handshake(connection=None), "Upgrade"),
        (handshake(connection=b"keep-alive"), "Upgrade"),
        (handshake(connection=b"Upgrade, Sec-WebSocket-Key"), "Connection"),
        (handshake(connection=b"Upgrade, sec-websocket-VERSION"), "Connection"),
        (handshake(sec_websocket_key=None), "Key"),
        (handshake(sec_websocket_key=b""), "Key"),
        (handshake(sec_websocket_key=KEY + b", " + KEY), "Key"),
        (handshake(sec_websocket_key=b"dGhlIHNhbXBsZSBub25jZR=="), "Key"),
        (handshake(sec_websocket_key=b"dG hlIHNhbXBsZSBub25jZQ=="), "Key"),
        (handshake(sec_websocket_key=b"c2hvcnQ="), "Key"),
        (handshake()[:-2] + b"Sec-WebSocket-Key: " + KEY + b"\r\n\r\n", "Key"),
        (handshake(sec_websocket_version=None), "13"),
        (handshake(sec_websocket_version=b"8"), "13"),
        (handshake(sec_websocket_version=b"013"), "13"),
        (handshake()[:-2] + b"Sec-WebSocket-Version: 13\r\n\r\n", "13"),
    ],
)
def test_what_is_none(raw: bytes, says: str) -> None:
    why = fault(raw)
    assert why is not None
    assert says in why


def test_a_server_agrees() -> None:
    assert answer_fault(agreed(), KEY) is None
    assert answer_fault(agreed(more=b"Sec-WebSocket-Protocol: a\r\n"), KEY) is None


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (agreed(b"AAAAAAAAAAAAAAAAAAAAAA=="), "Accept"),
        (agreed(more=b"sec-websocket-accept: x\r\n"), "Accept"),
        (agreed().replace(b"Sec-WebSocket-Accept", b"X"), "Accept"),
        (agreed().replace(b"Upgrade: websocket", b"Upgrade: h2c"), "something else"),
        (agreed(more=b"upgrade: h2c\r\n"), "something else"),
        (agreed().replace(b"Upgrade: websocket\r\n", b""), "something else"),
        (agreed().replace(b"Connection: Upgrade", b"Connection: close"), "Connection"),
        (agreed().replace(b"Connection: Upgrade\r\n", b""), "Connection"),
    ],
)
def test_or_does_not(raw: bytes, says: str) -> None:
    why = answer_fault(raw, KEY)
    assert why is not None
    assert says in why
