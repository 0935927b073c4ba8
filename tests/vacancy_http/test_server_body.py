"""Bodies: limit, budget, 100-continue, the drain of refused ones, times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.http_engine import GET, OK, Rig
from vacancy_http import Ending, Exchange, ListenerLimits, ProtocolFault, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = ListenerLimits(max_body_bytes=1000)
DENIED = Reply(401, (), b"denied")
CHUNKED = b"POST /x HTTP/1.1\r\nhost: p\r\ntransfer-encoding: chunked\r\n\r\n"


def post(length: int, extra: bytes = b"") -> bytes:
    return b"POST /x HTTP/1.1\r\nhost: p\r\ncontent-length: %d\r\n%b\r\n" % (length, extra)


def deny(x: Exchange) -> None:
    x.respond(DENIED)


def test_a_body_in_pieces_is_collected_and_what_follows_kept() -> None:
    rig = Rig()
    client = rig.connect(post(10) + b"01")
    client.send(b"234567")
    assert rig.app.bodies == []
    client.send(b"89" + GET)
    assert rig.app.bodies == [b"0123456789"]
    rig.link().send(OK)
    assert [x.method for x in rig.app.seen] == ["POST", "GET"]


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_chunked_body_is_collected_and_forwarded_with_a_length(step: int) -> None:
    rig = Rig()
    client = rig.connect()
    raw = CHUNKED + b"3\r\nabc\r\n5;ext=1\r\ndefgh\r\n0\r\nx-t: dropped\r\n\r\n" + GET
    for start in range(0, len(raw), step):
        client.send(raw[start : start + step])
    assert rig.app.bodies == [b"abcdefgh"]
    sent = rig.link().got()
    assert sent.endswith(b"content-length: 8\r\n\r\nabcdefgh")
    assert b"x-t" not in sent
    rig.link().send(OK)
    assert len(rig.app.seen) == 2


def test_a_chunked_body_is_read_a_piece_in_a_turn() -> None:
    rig = Rig()
    client = rig.connect(CHUNKED)
    client.protocol.data_received(b"5\r\nhello\r\n")
    assert not client.transport.reading
    rig.loop.settle()
    assert client.transport.reading
    client.send(b"0\r\n\r\n" + GET)
    assert rig.app.bodies == [b"hello"]
    rig.link().send(OK)
    assert len(rig.app.seen) == 2
    assert client.transport.reading


def test_a_body_of_tiny_chunks_without_end_is_refused() -> None:
    rig = Rig()
    client = rig.connect(CHUNKED)
    client.send(b"1\r\nx\r\n" * 4000)
    assert client.got() == b""
    client.send(b"1\r\nx\r\n" * 4000)
    assert client.got().startswith(b"HTTP/1.1 400 ")
    assert client.transport.eof


def test_a_refused_body_of_tiny_chunks_ends_the_connection() -> None:
    rig = Rig()
    rig.app.on_head = deny
    client = rig.connect(CHUNKED)
    client.send(b"1\r\nx\r\n" * 8000)
    assert client.got().startswith(b"HTTP/1.1 401 ")
    assert client.transport.aborted


def test_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    rig = Rig(SMALL)
    client = rig.connect(post(1001))
    assert client.got().startswith(b"HTTP/1.1 413 ")
    assert rig.app.faults[0][0] is ProtocolFault.BODY_TOO_LARGE
    assert rig.app.endings == [Ending.ANSWERED]
    assert rig.app.budget.peak == 0


def test_a_chunked_body_over_the_limit_is_refused_when_it_passes_it() -> None:
    rig = Rig(SMALL)
    client = rig.connect(CHUNKED + b"3e8\r\n" + b"x" * 1000 + b"\r\n")
    assert client.got() == b""
    client.send(b"1\r\nx\r\n")
    assert client.got().startswith(b"HTTP/1.1 413 ")
    client.send(b"0\r\n\r\n" + GET)
    assert rig.app.seen[-1].method == "GET"


def test_a_broken_chunk_is_400_and_the_end() -> None:
    rig = Rig()
    client = rig.connect(CHUNKED + b"xyz\r\n")
    assert client.got().startswith(b"HTTP/1.1 400 ")
    assert client.transport.eof
    assert rig.app.endings == [Ending.ANSWERED]
    assert rig.upstream.links == []


class TestBudget:
    def test_a_body_past_it_is_503_before_its_bytes_are_kept(self) -> None:
        rig = Rig()
        rig.app.budget.total = 100
        client = rig.connect(post(101))
        assert client.got().startswith(b"HTTP/1.1 503 ")
        assert rig.app.faults[0][0] is ProtocolFault.BUDGET
        assert rig.app.budget.used == 0

    def test_it_is_reserved_when_the_head_came_and_shared_by_all(self) -> None:
        rig = Rig()
        rig.app.budget.total = 100
        first = rig.connect(post(60))
        assert rig.app.budget.used == 60
        assert rig.connect(post(60)).got().startswith(b"HTTP/1.1 503 ")
        first.hang_up()
        assert rig.connect(post(60) + b"x" * 60).got() == b""
        assert len(rig.app.bodies) == 1

    def test_a_chunked_body_grows_in_steps_and_gives_back_the_rest(self) -> None:
        rig = Rig()
        client = rig.connect(CHUNKED + b"1\r\nx\r\n")
        assert rig.app.budget.used == 65536
        client.send(b"0\r\n\r\n")
        assert rig.app.budget.used == 1

    def test_a_chunked_body_takes_the_last_bytes_when_there_is_no_step_left(self) -> None:
        rig = Rig()
        rig.app.budget.total = 10
        rig.connect(CHUNKED + b"a\r\n0123456789\r\n0\r\n\r\n")
        assert rig.app.bodies == [b"0123456789"]

    def test_a_chunked_body_past_it_is_503(self) -> None:
        rig = Rig()
        rig.app.budget.total = 10
        client = rig.connect(CHUNKED + b"b\r\n0123456789a\r\n")
        assert client.got().startswith(b"HTTP/1.1 503 ")
        assert rig.app.budget.used == 0


class TestContinue:
    EXPECT = b"expect: 100-continue\r\n"

    def test_is_said_when_the_body_is_wanted(self) -> None:
        rig = Rig()
        client = rig.connect(post(5, self.EXPECT))
        assert client.got() == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(b"hello")
        sent = rig.link().got()
        assert b"expect" not in sent
        rig.link().send(OK)
        assert client.got().startswith(b"HTTP/1.1 200 OK\r\n")

    def test_is_not_said_when_the_body_comes_anyway(self) -> None:
        rig = Rig()
        assert rig.connect(post(5, self.EXPECT) + b"h").got() == b""

    def test_is_not_said_to_http_1_0(self) -> None:
        rig = Rig()
        assert rig.connect(post(5, self.EXPECT).replace(b"HTTP/1.1", b"HTTP/1.0")).got() == b""

    def test_a_refusal_instead_ends_the_connection(self) -> None:
        rig = Rig()
        rig.app.on_head = deny
        client = rig.connect(post(5, self.EXPECT))
        out = client.got()
        assert out.startswith(b"HTTP/1.1 401 ")
        assert b"connection: close" in out
        assert client.transport.eof


class TestDrain:
    def test_a_refused_body_is_dropped_and_the_connection_goes_on(self) -> None:
        rig = Rig(SMALL)
        rig.app.on_head = deny
        client = rig.connect(post(2000))
        assert client.got().startswith(b"HTTP/1.1 401 ")
        client.send(b"x" * 1999)
        assert len(rig.app.seen) == 1
        client.send(b"x" + post(5) + b"hello" + GET)
        assert len(rig.app.seen) == 3
        assert not client.transport.is_closing()

    def test_a_body_that_came_with_its_head_is_dropped_too(self) -> None:
        rig = Rig()
        rig.app.on_head = deny
        client = rig.connect((post(5) + b"GET /") * 3)
        assert client.got().count(b" 401 ") == 3

    def test_one_that_would_be_over_twice_the_limit_ends_the_connection(self) -> None:
        rig = Rig(SMALL)
        client = rig.connect(post(2001))
        assert b"connection: close" in client.got()
        assert client.transport.eof
        client.send(b"x" * 2000)
        assert not client.transport.aborted
        client.send(b"x")
        assert client.transport.aborted

    def test_a_chunked_one_is_dropped_up_to_twice_the_limit(self) -> None:
        rig = Rig(SMALL)
        rig.app.on_head = deny
        client = rig.connect(CHUNKED)
        for _ in range(9):
            client.send(b"c8\r\n" + b"x" * 200 + b"\r\n")
        assert not client.transport.aborted
        client.send(b"c8\r\n" + b"x" * 200 + b"\r\n")
        assert client.transport.aborted

    def test_a_chunked_one_that_ends_lets_the_connection_go_on(self) -> None:
        rig = Rig()
        rig.app.on_head = deny
        client = rig.connect(CHUNKED + b"2\r\nab\r\n0\r\n\r\n" + GET)
        assert client.got().count(b" 401 ") == 2

    def test_a_broken_chunk_in_it_ends_the_connection(self) -> None:
        rig = Rig()
        rig.app.on_head = deny
        client = rig.connect(CHUNKED)
        client.send(b"zz\r\n" + GET)
        assert client.transport.aborted
        assert len(rig.app.seen) == 1

    def test_one_that_was_held_back_is_read_on(self) -> None:
        rig = Rig(ListenerLimits(max_head_bytes=1000))
        rig.app.on_head = lambda _x: None
        client = rig.connect(post(5000))
        client.send(b"x" * 3000)
        assert not client.transport.reading
        rig.app.seen[0].respond(DENIED)
        assert client.transport.reading
        client.send(b"x" * 2000 + GET)
        assert len(rig.app.seen) == 2


class TestTimes:
    def slow(self, rig: Rig, gap_s: float, total_s: float) -> bytes:
        client = rig.connect(post(500))
        passed = 0.0
        while passed < total_s:
            rig.loop.advance(gap_s)
            passed += gap_s
            if rig.app.endings:
                break
            client.send(b"x")
        return client.got()

    @pytest.mark.parametrize(("gap_s", "total_s"), [(21, 21), (10, 130)], ids=["idle", "total"])
    def test_a_body_that_does_not_come_is_408(self, gap_s: float, total_s: float) -> None:
        rig = Rig()
        out = self.slow(rig, gap_s, total_s)
        assert out.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in out
        assert rig.app.faults == [(ProtocolFault.BODY_TIMEOUT, "the body did not come in time")]
        assert rig.app.endings == [Ending.ANSWERED]
        assert rig.app.budget.used == 0

    def test_a_slow_body_within_both_limits_is_taken(self) -> None:
        rig = Rig()
        assert self.slow(rig, 19, 110) == b""

    @pytest.mark.parametrize("refuse", [deny, lambda x: x.respond(DENIED)])
    def test_a_refused_body_that_stops_to_come_ends_the_connection(
        self,
        refuse: Callable[[Exchange], None],
    ) -> None:
        rig = Rig()
        rig.app.on_head = refuse
        client = rig.connect(post(500))
        rig.loop.advance(20.6)
        assert client.transport.aborted
