"""Which fields go on."""

from __future__ import annotations

import pytest

from standins.http_engine import GET, Rig
from vacancy_http.headers import end_to_end, field_lines, head_prefix, request_head
from vacancy_http.request_parser import RequestHead, parse_request_head

HOP = [
    b"connection: close", b"keep-alive: timeout=5", b"te: trailers", b"trailer: x", b"upgrade: h2c",
    b"proxy-authorization: Basic x", b"proxy-connection: close", b"proxy-anything: 1",
]  # fmt: skip


def forwarded(*fields: bytes) -> bytes:
    rig = Rig()
    rig.connect(b"GET /x HTTP/1.1\r\nhost: p\r\n" + b"".join(f + b"\r\n" for f in fields) + b"\r\n")
    return rig.link().got()


@pytest.mark.parametrize("field", [*HOP, b"expect: 100-continue", b"Proxy-Authenticate: x", b"KEEP-ALIVE: x"])
def test_hop_by_hop_fields_do_not_reach_the_upstream(field: bytes) -> None:
    name = field.split(b":")[0].lower()
    sent = forwarded(field, b"x-kept: 1")
    assert b"\r\n" + name + b":" not in sent.lower()
    assert b"\r\nx-kept: 1\r\n" in sent


@pytest.mark.parametrize("field", HOP)
def test_nor_the_client(field: bytes) -> None:
    rig = Rig()
    client = rig.connect(GET)
    rig.link().send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-kept: 1\r\n" + field + b"\r\n\r\n")
    assert client.got() == b"HTTP/1.1 200 OK\r\nx-kept: 1\r\ncontent-length: 0\r\n\r\n"


def test_fields_that_connection_names_are_dropped_in_both_directions() -> None:
    sent = forwarded(
        b"Connection: X-One, keep-alive", b"connection: x-Two", b"X-One: 1", b"X-Two: 2", b"X-Three: 3"
    )
    assert b"x-one" not in sent
    assert b"x-two" not in sent
    assert b"x-three: 3" in sent
    rig = Rig()
    client = rig.connect(GET)
    rig.link().send(b"HTTP/1.1 200 OK\r\nConnection: X-One\r\nX-One: 1\r\ncontent-length: 0\r\n\r\n")
    assert b"x-one" not in client.got()


def test_connection_cannot_take_the_engines_own_fields_away() -> None:
    sent = forwarded(b"Connection: host, expect")
    assert sent.count(b"host: 10.0.0.9:8000") == 1


def a_head(method: bytes = b"POST", fields: bytes = b"") -> RequestHead:
    return parse_request_head(method + b" /x HTTP/1.1\r\nhost: p\r\n" + fields + b"\r\n", 100)


def test_the_application_drops_and_adds() -> None:
    client = a_head(fields=b"authorization: secret\r\naccept: */*\r\ncontent-length: 99\r\n")
    host_line = b" HTTP/1.1\r\nhost: u\r\n"
    drop = frozenset({b"authorization"})
    add = [(b"authorization", b"own")]
    expected = (
        b"POST /y HTTP/1.1\r\nhost: u\r\naccept: */*\r\nauthorization: own\r\ncontent-length: 3\r\n\r\n"
    )
    for _ in range(2):
        assert head_prefix(client, b"/y", host_line, drop=drop, add=add) + b"3\r\n\r\n" == expected
    kept = head_prefix(client, b"/y", host_line, drop=frozenset(), add=())
    assert b"authorization: secret" in kept


def test_what_is_kept_for_one_head_is_bounded() -> None:
    client = a_head()
    for number in range(100):
        request_head(client, b"/", b"", drop=frozenset({b"%d" % number}), add=())
    assert len(client.lines) <= 8


@pytest.mark.parametrize(
    ("method", "told"), [(b"POST", True), (b"PUT", True), (b"GET", False), (b"DELETE", False)]
)
def test_no_body_is_told_where_one_would_be_expected(method: bytes, told: bool) -> None:
    head = request_head(a_head(method), b"/", b" HTTP/1.1\r\n", drop=frozenset(), add=())
    assert (b"content-length: 0" in head) is told


def test_repeated_fields_of_a_response_stay_apart() -> None:
    fields = [(b"set-cookie", b"a"), (b"set-cookie", b"b"), (b"content-length", b"1")]
    assert end_to_end(fields, []) == fields[:2]
    assert field_lines(fields[:2]) == b"set-cookie: a\r\nset-cookie: b\r\n"
