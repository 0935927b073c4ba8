from __future__ import annotations

import pytest

from vacancy_http.faults import MalformedError, ProtocolFault
from vacancy_http.request_parser import RequestHead, connection_tokens, parse_request_head


def parsed(raw: bytes, max_headers: int = 100) -> RequestHead:
    return parse_request_head(raw, max_headers)


def test_a_head() -> None:
    head = parsed(b"POST /a?b HTTP/1.1\r\nHost: p\r\nX-A:  b \t\r\nContent-Length: 7\r\n\r\n")
    assert (head.method, head.target, head.minor) == ("POST", b"/a?b", 1)
    assert head.headers == [(b"host", b"p"), (b"x-a", b"b"), (b"content-length", b"7")]
    assert (head.content_length, head.chunked, head.keep_alive, head.expects_continue) == (
        7,
        False,
        True,
        False,
    )


@pytest.mark.parametrize(
    ("version", "connection", "keeps"),
    [
        (b"1.1", None, True),
        (b"1.1", b"close", False),
        (b"1.1", b"X, Close", False),
        (b"1.1", b"keep-alive", True),
        (b"1.0", None, False),
        (b"1.0", b"Keep-Alive", True),
        (b"1.0", b"keep-alive, close", False),
    ],
)
def test_the_wish_for_the_connection(version: bytes, connection: bytes | None, keeps: bool) -> None:
    field = b"" if connection is None else b"Connection: " + connection + b"\r\n"
    assert parsed(b"GET / HTTP/" + version + b"\r\nHost: p\r\n" + field + b"\r\n").keep_alive is keeps


def test_two_connection_fields_count_as_one_list() -> None:
    head = parsed(b"GET / HTTP/1.1\r\nHost: p\r\nConnection: x\r\nConnection: close\r\n\r\n")
    assert head.fields[b"connection"] == b"x, close"
    assert not head.keep_alive


def test_expect() -> None:
    field = b"Host: p\r\nExpect: 100-Continue\r\n\r\n"
    assert parsed(b"POST / HTTP/1.1\r\n" + field).expects_continue
    assert not parsed(b"POST / HTTP/1.0\r\n" + field).expects_continue


def test_an_upgrade_is_read_as_any_head() -> None:
    head = parsed(b"GET / HTTP/1.1\r\nHost: p\r\nConnection: upgrade\r\nUpgrade: websocket\r\nX: y\r\n\r\n")
    assert head.fields[b"x"] == b"y"


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"GET / HTTP/1.1\r\nHost: p\r\nX: a\0b\r\n\r\n", "NUL"),
        (b"GET / HTTP/1.1\r\nHost: p\r\nConnection: close, Content-Type\r\n\r\n", "Connection"),
        (b"GET / HTTP/1.1\r\nHost: p\r\nConnection: x\r\nConnection: content-LENGTH\r\n\r\n", "Connection"),
        (b"GET / HTTP/1.1\r\nHost: p\r\nX: a\nY: b\r\n\r\n", "bare"),
        (b"GET / HTTP/1.1\r\nHost: p\r\nX: a\rb\r\n\r\n", "bare"),
        (b"GET / HTTP/1.1\r\nHost: p\r\nX: a\r\n b\r\n\r\n", "folded"),
        (b"GET /#a HTTP/1.1\r\nHost: p\r\n\r\n", "request line"),
        (b"GET /\r\nHost: p\r\n\r\n", "request line"),
        (b"GET / HTTP/2.0\r\nHost: p\r\n\r\n", "request line"),
        (b"GET / HTTP/1.1\r\nHost : p\r\n\r\n", "field line"),
        (b"GET / HTTP/1.1\r\nHost: p\r\nX: \x01\r\n\r\n", "field line"),
        (b"GET / HTTP/1.1\r\nX: y\r\n\r\n", "Host"),
        (b"GET http://x/ HTTP/1.1\r\nHost: p\r\n\r\n", "forward proxy"),
        (b"GET * HTTP/1.1\r\nHost: p\r\n\r\n", "forward proxy"),
        (b"CONNECT p:443 HTTP/1.1\r\nHost: p\r\n\r\n", "forward proxy"),
        (b"NONSENSE / HTTP/1.1\r\nHost: p\r\n\r\n", "reading"),
    ],
)
def test_refusals_say_why(raw: bytes, why: str) -> None:
    with pytest.raises(MalformedError, match=why) as caught:
        parsed(raw)
    assert caught.value.fault is ProtocolFault.BAD_REQUEST


def test_too_many_fields_are_a_fault_of_their_own() -> None:
    with pytest.raises(MalformedError) as caught:
        parsed(b"GET / HTTP/1.1\r\nHost: p\r\na: b\r\nc: d\r\n\r\n", max_headers=2)
    assert caught.value.fault is ProtocolFault.HEAD_TOO_LARGE


def test_options_of_the_server_itself() -> None:
    assert parsed(b"OPTIONS * HTTP/1.1\r\nHost: p\r\n\r\n").target == b"*"


def test_connection_tokens() -> None:
    assert connection_tokens(b"Close") == [b"close"]
    assert connection_tokens(b"A , b,C") == [b"a", b"b", b"c"]
