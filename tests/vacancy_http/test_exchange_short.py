"""The short way does what the full one does; `test_head_memo` compares them with random messages."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from standins.http_engine import GET, POST, Rig
from vacancy_http import Ending, Exchange, ProtocolFault, ResponseHead, head_prefix
from vacancy_http.chunked import ChunkedDecoder
from vacancy_http.states import IllegalTransitionError

JSON = b"application/json"
REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


def passing_on(rig: Rig) -> list[bytes | None]:
    """Make the application take bodies at once and pass them on; what it took."""
    taken: list[bytes | None] = []

    def on_head(x: Exchange) -> None:
        body = x.small
        taken.append(body)
        if body is None:
            x.collect_body()
        else:
            x.pass_on(rig.upstream, prefix(x), body, JSON)

    rig.app.on_head = on_head
    return taken


def prefix(x: Exchange) -> bytes:
    return head_prefix(x.head, x.target, b" HTTP/1.1\r\nhost: up\r\n", drop=frozenset(), add=())


def test_a_body_that_came_with_its_head_is_passed_on_within_the_call() -> None:
    rig = Rig()
    taken = passing_on(rig)
    client = rig.connect()
    for _ in range(3):
        client.send(POST)
        assert rig.link().got() == b"POST /x HTTP/1.1\r\nhost: up\r\ncontent-length: 5\r\n\r\nhello"
        assert rig.app.budget.used == 5
        rig.link().send(REPLY)
        assert client.got() == REPLY
        assert rig.app.budget.used == 0
    assert taken == [b"hello"] * 3
    assert rig.app.bodies == []
    assert rig.app.endings == [Ending.COMPLETE] * 3
    assert len(rig.upstream.links) == 1


def test_of_a_reply_of_the_named_type_whose_head_was_seen_nobody_is_told() -> None:
    rig = Rig()
    passing_on(rig)
    client = rig.connect()
    told = []
    for reply in (REPLY, REPLY, REPLY.replace(b"json", b"text"), REPLY.replace(b"json", b"text"), REPLY):
        client.send(POST)
        rig.link().send(reply)
        assert client.got() == reply
        told.append([head.content_type for head in rig.app.heads])
        rig.app.heads.clear()
    text = b"application/text"
    assert told == [[JSON], [], [text], [text], [JSON]]


def test_without_a_type_every_reply_is_told() -> None:
    rig = Rig()
    client = rig.connect()
    for _ in range(3):
        client.send(POST)
        rig.link().send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    assert len(rig.app.heads) == 3


@pytest.mark.parametrize("pieces", [(POST[:-1], POST[-1:]), (POST[:9], POST[9:])])
def test_a_body_that_comes_later_is_collected(pieces: tuple[bytes, ...]) -> None:
    rig = Rig()
    taken = passing_on(rig)
    client = rig.connect()
    for piece in pieces:
        client.send(piece)
    assert rig.app.bodies + [body for body in taken if body is not None] == [b"hello"]


def test_there_must_be_room_for_it() -> None:
    rig = Rig()
    rig.app.budget.total = 4
    taken = passing_on(rig)
    client = rig.connect(POST)
    assert taken == [None]
    assert [fault for fault, _ in rig.app.faults] == [ProtocolFault.BUDGET]
    assert client.got().startswith(b"HTTP/1.1 503 ")
    assert rig.app.budget.used == 0


def test_it_is_reserved_until_the_end() -> None:
    rig = Rig()
    rig.app.on_head = lambda _x: None
    client = rig.connect(POST)
    assert rig.app.seen[0].small == b"hello"
    assert rig.app.budget.used == 5
    client.hang_up()
    assert rig.app.budget.used == 0


def test_after_the_end_nothing_is_sent_and_twice_is_a_bug() -> None:
    rig = Rig()
    rig.app.on_head = lambda x: x.collect_body()
    rig.app.on_body = lambda _x: None
    client = rig.connect(POST)
    x = rig.app.seen[0]
    x.pass_on(rig.upstream, prefix(x), b"hello", JSON)
    with pytest.raises(IllegalTransitionError):
        x.pass_on(rig.upstream, prefix(x), b"hello", JSON)
    client.hang_up()
    links = len(rig.upstream.links)
    x.pass_on(rig.upstream, prefix(x), b"hello", JSON)
    assert len(rig.upstream.links) == links


def test_the_application_may_cut_it_when_it_is_told() -> None:
    rig = Rig()
    client = rig.connect()

    def on_response(x: Exchange, _head: ResponseHead) -> None:
        x.cancel(x_reply)

    x_reply = rig.app.fault_reply(ProtocolFault.BUDGET, "no")
    for _ in range(2):
        client = rig.connect(POST)
        rig.link().send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        client.got()
    rig.app.on_response = on_response
    client = rig.connect(POST)
    rig.link().send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    assert client.transport.aborted
    assert rig.app.endings[-1] is Ending.CANCELLED
    assert rig.app.budget.used == 0


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
CHUNKS = [
    b"5\r\nhello\r\n",
    b"1\r\n\n\r\n",
    b"00a\r\n" + b"x" * 10 + b"\r\n",
    b"3;e=f\r\nabc\r\n",
    b"2\r\n\r\n\r\n",
]


def streamed(seed: int, version: bytes, *, whole: bool) -> tuple[bytes, bytes, int, bool]:
    """What a client gets of a random stream; `whole`: chunk by chunk, else cut anywhere."""
    rng = Random(seed)  # noqa: S311 - the same each time
    rig, tapped = Rig(), bytearray()
    rig.app.on_response = lambda x, _head: setattr(x, "tap", tapped.extend)
    client = rig.connect(b"GET /x HTTP/1.%b\r\nhost: p\r\n\r\n" % version)
    server = rig.link()
    pieces = [HEAD, *(rng.choice(CHUNKS) for _ in range(30)), b"0\r\n\r\n"]
    if not whole:
        data = b"".join(pieces)
        cuts = sorted({0, len(data), *(rng.randrange(len(data)) for _ in range(25))})
        pieces = [data[start:end] for start, end in pairwise(cuts)]
    for piece in pieces:
        server.send(piece)
    got = client.got().partition(b"\r\n\r\n")
    body = got[2]
    if b"chunked" in got[0]:
        decoder = ChunkedDecoder()
        body = decoder.feed(body)
        assert decoder.done
    return body, bytes(tapped), rig.app.seen[0].response_bytes, rig.app.endings == [Ending.COMPLETE]


@pytest.mark.parametrize("version", [b"1", b"0"])
@pytest.mark.parametrize("seed", range(20))
def test_a_stream_chunk_by_chunk_is_the_same_cut_anywhere(seed: int, version: bytes) -> None:
    assert streamed(seed, version, whole=True) == streamed(seed, version, whole=False)


def test_one_chunk_goes_on_as_the_bytes_it_came_in() -> None:
    rig = Rig()
    client = rig.connect(GET)
    rig.link().send(HEAD)
    client.got()
    rig.link().send(CHUNKS[0])
    assert client.got() == CHUNKS[0]
