"""A head that is remembered has the reading it would have had anyway."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from standins.http_corpus import cases
from standins.http_engine import GET, OK, Rig
from vacancy_http import ListenerLimits, Reply
from vacancy_http.faults import MalformedError
from vacancy_http.head_memo import Around, around_digits, key_of, remember, whole_body
from vacancy_http.request_parser import RequestHead, parse_request_head, read_request_head

if TYPE_CHECKING:
    from standins.http_engine import Client, Server

START = b"POST /x HTTP/1.1\r\nHost: p\r\n"


def reading(head: RequestHead, digits: bytes) -> tuple[object, ...]:
    length = int(digits) if digits else head.content_length
    fields = {n: v for n, v in head.fields.items() if n != b"content-length"}
    return (
        head.method,
        head.target,
        head.minor,
        fields,
        length,
        head.chunked,
        head.keep_alive,
        head.expects_continue,
    )


def test_only_the_digits_are_left_out() -> None:
    assert key_of(START + b"Content-Length: 12\r\n\r\n") == (START + b"Content-Length: \r\n\r\n", b"12")
    assert key_of(START + b"content-length: 12\r\n\r\n") == (START + b"content-length: \r\n\r\n", b"12")
    assert key_of(START + b"CONTENT-LENGTH: 12\r\n\r\n") == (START + b"CONTENT-LENGTH: 12\r\n\r\n", b"")
    assert key_of(START + b"\r\n") == (START + b"\r\n", b"")


@pytest.mark.parametrize("value", [b"", b"+1", b"1 ", b"1,1", b"a", b"1" * 19, b"01", b"00"])
def test_what_is_not_digits_has_no_key(value: bytes) -> None:
    assert key_of(START + b"Content-Length: " + value + b"\r\n\r\n") == (None, b"")


@pytest.mark.parametrize(
    "line",
    [
        b"Content-Length: ",
        b"Content-Length: 5\r\nContent-Length: 5",
        b"Content-Length: 5\r\nCONTENT-LENGTH: 5",
        b"content-length: 6\r\nContent-Length: 5",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Content-Length: -5",
        b"Content-Length:\r\n 5",
        b"Content-Length: 5\nX: y",
        b"Content-Length: 5\rX: y",
    ],
)
def test_no_ambiguous_head_is_taken_for_one_that_was_read(line: bytes) -> None:
    memo: dict[bytes, RequestHead] = {}
    read_request_head(memo, START + b"Content-Length: 5\r\n\r\n", 100)
    read_request_head(memo, START + b"content-length: 5\r\n\r\n", 100)
    for _ in range(2):
        with pytest.raises(MalformedError):
            read_request_head(memo, START + line + b"\r\n\r\n", 100)


def test_with_one_memo_for_all_every_head_is_read_as_without() -> None:
    rng = Random(7)  # noqa: S311 - the same each time
    memo: dict[bytes, RequestHead] = {}
    found = 0
    for case in cases(rng, 4000):
        end = case.raw.find(b"\r\n\r\n") + 4
        if end < 4:
            continue
        for raw in (case.raw[:end], case.raw[:end].replace(b"Content-Length: 5", b"Content-Length: 60")):
            try:
                expected = reading(parse_request_head(raw, 100), b"")
            except MalformedError:
                with pytest.raises(MalformedError):
                    read_request_head(memo, raw, 100)
            else:
                for _ in range(2):
                    before = len(memo)
                    assert reading(*read_request_head(memo, raw, 100)) == expected
                    found += len(memo) == before
    assert found > 1000


def test_it_is_bounded() -> None:
    memo: dict[bytes, int] = {}
    for number in range(10_000):
        remember(memo, b"%d" % number, number)
    remember(memo, b"x" * 3000, 1)
    remember(memo, None, 1)
    assert len(memo) <= 256
    assert b"x" * 3000 not in memo


def test_exchanges_that_share_a_head_have_their_own_lengths() -> None:
    rig = Rig()
    client = rig.connect()
    for body in (b"abc", b"defgh", b""):
        client.send(START + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        if body:
            assert rig.link().got().endswith(b"content-length: %d\r\n\r\n" % len(body) + body)
        rig.link().send(OK)
    assert rig.app.bodies == [b"abc", b"defgh"]
    assert [x.header(b"content-length") for x in rig.app.seen] == [b"3", b"5", b"0"]
    assert [x.headers[-1] for x in rig.app.seen] == [(b"content-length", b) for b in (b"3", b"5", b"0")]
    assert [x.has_body for x in rig.app.seen] == [True, True, False]
    assert len(rig.listener.heads) == 1


def test_an_edited_response_head_does_not_change_the_next() -> None:
    rig = Rig()
    rig.app.on_response = lambda _x, head: head.headers.append((b"x-n", b"%d" % len(rig.app.seen)))
    client = rig.connect(GET)
    rig.link().send(OK)
    assert client.got().count(b"x-n") == 1
    client.send(GET)
    rig.link().send(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes")
    assert client.got() == b"HTTP/1.1 200 OK\r\nx-n: 2\r\ncontent-length: 3\r\n\r\nyes"


def test_the_same_response_head_answers_head_and_get() -> None:
    rig = Rig()
    client = rig.connect(b"HEAD / HTTP/1.1\r\nhost: p\r\n\r\n")
    rig.link().send(OK[:-2])
    client.got()
    client.send(GET)
    rig.link().send(OK)
    assert client.got().endswith(b"content-length: 2\r\n\r\nok")


AROUND = (START + b"Content-Length: ", b"\r\nX-A: b\r\n\r\n")


@pytest.mark.parametrize("body", [b"", b"a", b"hello" * 40])
def test_a_whole_message_is_recognized(body: bytes) -> None:
    before, after = AROUND
    data = before + b"%d" % len(body) + after + body
    head = data[: len(data) - len(body)]
    around = around_digits(*key_of(head), head)
    assert around is not None
    assert (around.before, around.after) == AROUND
    assert whole_body(data, around) == body


@pytest.mark.parametrize(
    "data",
    [
        b"",
        AROUND[0],
        AROUND[0] + b"2",
        AROUND[0] + b"2" + AROUND[1],
        AROUND[0] + b"2" + AROUND[1] + b"a",
        AROUND[0] + b"2" + AROUND[1] + b"abc",
        AROUND[0] + b"+2" + AROUND[1] + b"ab",
        AROUND[0] + b" 2" + AROUND[1] + b"ab",
        AROUND[0] + b"2 " + AROUND[1] + b"ab",
        AROUND[0] + b"02" + AROUND[1] + b"ab",
        AROUND[0] + b"-2" + AROUND[1] + b"ab",
        AROUND[0] + b"" + AROUND[1],
        AROUND[0] + b"0" * 18 + b"2" + AROUND[1] + b"ab",
        AROUND[0] + "\u0662".encode() + AROUND[1] + b"ab",
        AROUND[0] + b"2" + b"\r\nX-A: c\r\n\r\n" + b"ab",
        AROUND[0] + b"2" + b"\r\n\r\n" + b"ab",
        AROUND[0].lower() + b"2" + AROUND[1] + b"ab",
        AROUND[0] + b"2\r\nContent-Length: 2" + AROUND[1] + b"ab",
    ],
)
def test_anything_else_is_not(data: bytes) -> None:
    assert whole_body(data, Around(*AROUND)) is None


def test_a_head_without_plain_digits_has_no_sides() -> None:
    for raw in (START + b"\r\n", START + b"Content-Length: 5,5\r\n\r\n", START + b"x" * 3000 + AROUND[1]):
        assert around_digits(*key_of(raw), raw) is None


REPLIES = (
    OK,
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 500 No\r\nContent-Length: 3\r\nX-A: b\r\n\r\nerr",
    b"HTTP/1.1 302 Found\r\nLocation: http://10.0.0.9:8000/y\r\nContent-Length: 2\r\n\r\ngo",
    b"HTTP/1.1 204 Empty\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
    b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n" + b"o" * 12,
    b"HTTP/1.1 200 OK\r\nContent-Length: 012\r\n\r\n" + b"o" * 12,
)
REQUESTS = (
    START + b"Content-Length: 5\r\n\r\nhello",
    START + b"Content-Length: 12\r\n\r\nhello, world",
    START + b"content-length: 5\r\nX-A: b\r\n\r\nhello",
    START + b"Content-Length: 0\r\n\r\n",
    START + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
    START + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello",
    START.replace(b"1.1", b"1.0") + b"Connection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
    START + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    START.replace(b"POST", b"HEAD") + b"Content-Length: 5\r\n\r\nhello",
    START + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    START + b"Content-Length: 70\r\n\r\n" + b"too large for its limit" * 4,
    GET,
)


def spoken(seed: int, *, whole: bool) -> list[object]:
    """What 40 random requests and replies cause; `whole`: each in one piece, else each in two."""
    rng = Random(seed)  # noqa: S311 - the same each time
    rig = Rig(ListenerLimits(max_body_bytes=64))
    if rng.random() < 0.3:
        rig.app.on_response = lambda _x, head: head.headers.append((b"x-from", b"app"))
    client, heard = rig.connect(), list[object]()
    for _ in range(40):
        request, reply, refuse = (
            rng.choice(REQUESTS[: rng.choice((2, 12))]),
            rng.choice(REPLIES),
            rng.random(),
        )
        rig.app.on_body = (
            rig.app.forward if refuse < 0.9 else lambda x: x.respond(Reply(503, ((b"x", b"y"),), b"no"))
        )
        if client.transport.is_closing() or client.transport.eof:
            client = rig.connect()
        asked = len(rig.app.endings)
        _in_pieces(client, request, whole=whole)
        if rig.upstream.links and (sent := rig.link().got()):
            heard.append(sent)
            _in_pieces(rig.link(), reply, whole=whole)
        heard += [
            client.got(),
            client.transport.is_closing(),
            rig.app.endings[asked:],
            rig.upstream.idle_count,
        ]
        heard += [(x.status, x.response_bytes, x.header(b"content-length")) for x in rig.app.seen[asked:]]
        heard += [rig.app.budget.used, [(h.status, h.headers) for h in rig.app.heads[-1:]]]
    return heard


def _in_pieces(side: Client | Server, data: bytes, *, whole: bool) -> None:
    if whole:
        side.send(data)
        return
    side.send(data[:3])
    if not side.transport.is_closing():
        side.send(data[3:])


@pytest.mark.parametrize("seed", range(40))
def test_a_message_in_one_piece_is_treated_as_one_in_two(seed: int) -> None:
    assert spoken(seed, whole=True) == spoken(seed, whole=False)
