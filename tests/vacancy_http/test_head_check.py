"""What is accepted has one reading: the engine's, h11's and the upstream's are the same, 20,000 times."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from standins.http_corpus import Case, Message, cases, read_by_h11
from standins.http_engine import Rig
from vacancy_http.faults import MalformedError
from vacancy_http.head_check import check_partial, content_length, request_framing, response_framing

if TYPE_CHECKING:
    from vacancy_http.request_parser import RequestHead

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


REMEMBERED: dict[bytes, RequestHead] = {}


def serve(rng: Random, case: Case) -> tuple[list[Message], list[Message]]:
    """What the application and what the upstream got of the bytes in `case`, sent in random pieces."""
    rig = Rig()
    if rng.random() < 0.5:
        rig.listener.heads = REMEMBERED  # with what others sent before in mind, and without
    accepted: list[Message] = []

    def note(x: object) -> None:
        seen = rig.app.seen[-1]
        body = rig.app.bodies[-1] if seen.has_body else b""
        # h11 writes the coding's name in lower case
        fields = tuple((n, v.lower() if n == b"transfer-encoding" else v) for n, v in seen.headers)
        accepted.append((seen.method.encode(), seen.target, fields, body))
        rig.app.forward(seen)

    rig.app.on_body = note
    rig.app.on_head = lambda x: x.collect_body() if x.has_body else note(x)
    client = rig.connect()
    pieces = rng.randrange(1, 4)
    cuts = sorted(rng.randrange(len(case.raw) + 1) for _ in range(pieces - 1))
    for start, end in zip([0, *cuts], [*cuts, len(case.raw)], strict=True):
        if end > start and not client.transport.is_closing():
            client.send(case.raw[start:end])
    upstream = b""
    while rig.upstream.links and rig.app.seen[-1].link is not None:
        link = rig.link()
        upstream += link.got()
        link.send(OK)
    return accepted, read_by_h11(upstream)


def test_20000_requests_are_read_as_h11_reads_them_and_nothing_else_reaches_the_upstream() -> None:
    rng = Random(20260730)  # noqa: S311 - a corpus that is the same each time
    valid = served = accepted_invalid = 0
    for case in cases(rng, 20_000):
        accepted, forwarded = serve(rng, case)
        expected = read_by_h11(case.raw)
        assert accepted == expected[: len(accepted)], case.raw
        assert [(m, t, b) for m, t, _, b in forwarded] == [(m, t, b) for m, t, _, b in accepted], case.raw
        for _, _, fields, _ in forwarded:
            names = {name for name, _ in fields}
            assert not names & {
                b"te",
                b"trailer",
                b"connection",
                b"expect",
                b"transfer-encoding",
                b"x-trailer",
            }
        if case.classic:
            assert accepted == [], case.raw
        if case.valid:
            valid += case.valid
            served += len(accepted)
        elif accepted:
            accepted_invalid += 1
    assert served >= 0.95 * valid
    assert accepted_invalid > 100  # the mutations are not all trivially broken


@pytest.mark.parametrize("value", [b"", b"+1", b"-1", b"1,1", b"1 1", b"0x1", b"1" * 19, "\u0661".encode()])
def test_a_length_is_digits_only(value: bytes) -> None:
    with pytest.raises(MalformedError):
        content_length(value)


@pytest.mark.parametrize("value", [b"a", b"a:80", b"127.0.0.1:8080", b"[::1]:80", b"a_b.c", b"a%20b", b"a:"])
def test_hosts(value: bytes) -> None:
    assert request_framing(1, [(b"host", value)], {b"host": value}) == (0, False)


@pytest.mark.parametrize(
    "value", [b"", b"a b", b"a/b", b"u@a", b"[::1", b"a:b", b"a:123456", b"a\xe9", b"a?b", b"%zz"]
)
def test_what_is_no_host(value: bytes) -> None:
    with pytest.raises(MalformedError, match="Host"):
        request_framing(1, [(b"host", value)], {b"host": value})


@pytest.mark.parametrize(
    ("minor", "fields"),
    [
        (1, [(b"content-length", b"1"), (b"transfer-encoding", b"chunked")]),
        (1, [(b"transfer-encoding", b"gzip, chunked")]),
        (1, [(b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")]),
        (0, [(b"transfer-encoding", b"chunked")]),
        (1, [(b"content-length", b"1"), (b"content-length", b"1")]),
        (1, [(b"content-length", b"a")]),
    ],
)
def test_ambiguous_framing_is_refused_in_both_directions(
    minor: int, fields: list[tuple[bytes, bytes]]
) -> None:
    with pytest.raises(MalformedError):
        response_framing(minor, fields, dict(fields))
    with_host = [(b"host", b"a"), *fields]
    with pytest.raises(MalformedError):
        request_framing(minor, with_host, dict(with_host))


def test_a_part_of_a_head_is_let_be() -> None:
    check_partial(b"GE")
    check_partial(b"GET / HTTP/1.1\r\nhost: ")
