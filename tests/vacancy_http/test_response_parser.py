from __future__ import annotations

import pytest

from vacancy_http.faults import MalformedError
from vacancy_http.response_parser import parse_response_head


def test_a_head() -> None:
    head = parse_response_head(b"HTTP/1.1 200 All Right\r\nContent-Length: 5\r\nX-A: b\r\n\r\n", "GET", {})
    assert (head.status, head.status_line) == (200, b"200 All Right")
    assert head.headers == [(b"x-a", b"b")]
    assert (head.length, head.content_length, head.chunked, head.keep_alive) == (5, 5, False, True)


@pytest.mark.parametrize("line", [b"200", b"200 ", b"200 caf\xe9"])
def test_reasons(line: bytes) -> None:
    assert parse_response_head(b"HTTP/1.1 " + line + b"\r\n\r\n", "GET", {}).status_line == line


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304), ("GET", 103)])
def test_replies_without_a_body(method: str, status: int) -> None:
    head = parse_response_head(b"HTTP/1.1 %d X\r\nContent-Length: 5\r\n\r\n" % status, method, {})
    assert (head.length, head.content_length) == (0, 5)
    chunked = parse_response_head(b"HTTP/1.1 %d X\r\nTransfer-Encoding: chunked\r\n\r\n" % status, method, {})
    assert (chunked.length, chunked.chunked) == (0, False)


def test_no_framing_means_until_close() -> None:
    head = parse_response_head(b"HTTP/1.1 200 OK\r\n\r\n", "GET", {})
    assert (head.length, head.chunked) == (None, False)


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"http/1.1 200 OK\r\n\r\n",
        b"HTTP/1.2 200 OK\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
        b"HTTP/1.1 200 O\0K\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
    ],
)
def test_what_is_no_response(raw: bytes) -> None:
    with pytest.raises(MalformedError):
        parse_response_head(raw, "GET", {})


def test_several_connection_fields() -> None:
    head = parse_response_head(
        b"HTTP/1.1 200 OK\r\nConnection: x-a\r\nConnection: close\r\nX-A: b\r\nX-C: d\r\n\r\n",
        "GET",
        {},
    )
    assert not head.keep_alive
    assert head.headers == [(b"x-c", b"d")]
