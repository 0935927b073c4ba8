"""One request and its reply, in the order things happen."""

from __future__ import annotations

import pytest

from standins.http_engine import GET, OK, POST, Rig
from vacancy_http import Ending, Exchange, ProtocolFault, Reply
from vacancy_http.states import IllegalTransitionError

BUSY = Reply(503, ((b"retry-after", b"5"),), b"busy")
STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def test_a_request_is_forwarded_and_its_reply_comes_back() -> None:
    rig = Rig()
    client = rig.connect(POST)
    assert rig.link().got() == b"POST /x HTTP/1.1\r\nhost: 10.0.0.9:8000\r\ncontent-length: 5\r\n\r\nhello"
    rig.link().send(OK)
    assert client.got() == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    assert rig.app.endings == [Ending.COMPLETE]
    x = rig.app.seen[0]
    assert (x.method, x.target, x.path, x.query) == ("POST", b"/x", b"/x", None)
    assert (x.status, x.response_bytes, x.sent_to_upstream) == (200, 2, True)
    assert rig.app.budget.used == 0
    assert rig.app.budget.peak == 5
    assert rig.upstream.idle_count == 1


def test_head_and_body_leave_in_one_write_each_way() -> None:
    rig = Rig()
    client = rig.connect(POST)
    assert rig.link().transport.writes == 1
    rig.link().send(OK)
    assert client.transport.writes == 1


def test_target_is_split_and_fields_can_be_read() -> None:
    rig = Rig()
    rig.connect(b"GET /a/b?c=d&e HTTP/1.1\r\nHost: p\r\nX-A: 1\r\nx-a: 2\r\nAccept:  t \r\n\r\n")
    x = rig.app.seen[0]
    assert (x.path, x.query) == (b"/a/b", b"c=d&e")
    assert x.header(b"x-a") == b"1, 2"
    assert x.header(b"accept") == b"t"
    assert x.header(b"missing") is None
    assert x.headers == [(b"host", b"p"), (b"x-a", b"1"), (b"x-a", b"2"), (b"accept", b"t")]
    assert x.peer == ("192.0.2.1", 5)
    assert not x.is_tls


def test_chunks_of_a_stream_go_on_one_by_one_and_the_tap_sees_their_payload() -> None:
    rig = Rig()
    seen: list[bytes] = []
    rig.app.on_response = lambda x, _head: setattr(x, "tap", seen.append)
    client = rig.connect(GET)
    rig.link().send(STREAM)
    assert client.got() == STREAM
    rig.link().send(b"5\r\nhello\r\n")
    assert client.got() == b"5\r\nhello\r\n"
    rig.link().send(b"3\r\nyou\r\n0\r\nx-trailer: dropped\r\n\r\n")
    assert client.got() == b"3\r\nyou\r\n0\r\n\r\n"
    assert seen == [b"hello", b"you"]
    assert rig.app.endings == [Ending.COMPLETE]


def test_an_own_reply_ends_as_answered_and_the_connection_goes_on() -> None:
    rig = Rig()
    rig.app.on_head = lambda x: x.respond(BUSY)
    client = rig.connect(GET + GET)
    reply = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-length: 4\r\n\r\nbusy"
    assert client.got() == reply * 2
    assert rig.app.endings == [Ending.ANSWERED] * 2
    assert not client.transport.is_closing()
    assert rig.upstream.links == []


def test_body_received_may_answer_later() -> None:
    rig = Rig()
    waiting: list[Exchange] = []
    rig.app.on_body = waiting.append
    client = rig.connect(POST)
    assert client.got() == b""
    rig.app.forward(waiting[0])
    rig.link().send(OK)
    assert client.got().endswith(b"ok")


def test_a_decision_that_comes_after_the_client_left_does_nothing() -> None:
    rig = Rig()
    waiting: list[Exchange] = []
    rig.app.on_body = waiting.append
    client = rig.connect(POST)
    client.hang_up()
    assert rig.app.endings == [Ending.CLIENT_GONE]
    rig.app.forward(waiting[0])
    waiting[0].respond(BUSY)
    waiting[0].cancel(BUSY)
    assert rig.upstream.links == []
    assert rig.app.endings == [Ending.CLIENT_GONE]


def test_respond_after_forward_is_a_bug_and_says_so() -> None:
    rig = Rig()
    rig.connect(GET)
    with pytest.raises(IllegalTransitionError, match="cancel"):
        rig.app.seen[0].respond(BUSY)


class TestCancel:
    def test_before_the_head_replies_and_the_connection_goes_on(self) -> None:
        rig = Rig()
        client = rig.connect(POST)
        link = rig.link()
        rig.app.seen[0].cancel(BUSY)
        assert link.transport.aborted
        assert rig.app.endings == [Ending.CANCELLED]
        assert client.got().startswith(b"HTTP/1.1 503 ")
        assert rig.app.budget.used == 0
        client.send(GET)
        rig.link().send(OK)
        assert client.got().endswith(b"ok")

    def test_of_a_started_stream_aborts_and_never_ends_it_cleanly(self) -> None:
        rig = Rig()
        client = rig.connect(GET)
        link = rig.link()
        link.send(STREAM + b"2\r\nab\r\n")
        rig.app.seen[0].cancel(BUSY)
        assert link.transport.aborted
        assert client.transport.aborted
        assert b"0\r\n\r\n" not in client.got()
        assert rig.app.endings == [Ending.CANCELLED]

    def test_while_the_body_arrives_drops_the_rest_of_it(self) -> None:
        rig = Rig()
        client = rig.connect(POST[:-3])
        rig.app.seen[0].cancel(BUSY)
        assert client.got().startswith(b"HTTP/1.1 503 ")
        assert rig.app.budget.used == 0
        client.send(b"llo" + GET)
        assert rig.app.seen[-1].method == "GET"

    def test_while_connecting_leaves_no_connection(self) -> None:
        rig = Rig()
        rig.upstream.waits = True
        rig.connect(GET)
        rig.app.seen[0].cancel(BUSY)
        assert rig.app.endings == [Ending.CANCELLED]
        assert not rig.app.seen[0].sent_to_upstream

    def test_from_within_response_started(self) -> None:
        rig = Rig()
        rig.app.on_response = lambda x, _head: x.cancel(BUSY)
        client = rig.connect(GET)
        link = rig.link()
        link.send(STREAM)
        assert link.transport.aborted
        assert client.transport.aborted
        assert rig.app.endings == [Ending.CANCELLED]

    def test_from_within_the_tap(self) -> None:
        rig = Rig()
        rig.app.on_response = lambda x, _head: setattr(x, "tap", lambda _data: x.cancel(BUSY))
        rig.connect(GET)
        rig.link().send(STREAM + b"2\r\nab\r\n0\r\n\r\n")
        assert rig.app.endings == [Ending.CANCELLED]

    def test_twice_and_after_the_end_is_nothing(self) -> None:
        rig = Rig()
        rig.connect(GET)
        x = rig.app.seen[0]
        x.cancel(BUSY)
        x.cancel(BUSY)
        assert rig.app.endings == [Ending.CANCELLED]


class TestClientGone:
    @pytest.mark.parametrize(
        "sent", [b"", STREAM, STREAM + b"2\r\nab\r\n"], ids=["no head", "head", "mid-stream"]
    )
    def test_the_upstream_is_closed_in_the_same_turn(self, sent: bytes) -> None:
        rig = Rig()
        client = rig.connect(POST)
        link = rig.link()
        if sent:
            link.send(sent)
        client.protocol.eof_received()
        assert link.transport.aborted
        assert rig.app.endings == [Ending.CLIENT_GONE]
        assert rig.app.budget.used == 0

    def test_while_its_body_arrives(self) -> None:
        rig = Rig()
        client = rig.connect(POST[:-1])
        client.hang_up()
        assert rig.app.endings == [Ending.CLIENT_GONE]
        assert rig.app.budget.used == 0

    def test_while_connecting(self) -> None:
        rig = Rig()
        rig.upstream.waits = True
        rig.connect(GET).hang_up()
        assert rig.app.endings == [Ending.CLIENT_GONE]

    def test_by_a_reset(self) -> None:
        rig = Rig()
        client = rig.connect(GET)
        client.break_off(ConnectionResetError())
        assert rig.link().transport.aborted
        assert rig.app.endings == [Ending.CLIENT_GONE]


def test_an_upstream_that_cannot_be_reached() -> None:
    rig = Rig()
    rig.upstream.connects = False
    client = rig.connect(POST)
    assert rig.app.endings == [Ending.UPSTREAM_UNREACHABLE]
    assert rig.app.faults[0][0] is ProtocolFault.UPSTREAM_UNREACHABLE
    assert client.got().startswith(b"HTTP/1.1 503 ")
    assert not rig.app.seen[0].sent_to_upstream


class TestFraming:
    def test_http_1_0_clients_get_no_chunks_but_the_end_of_the_connection(self) -> None:
        rig = Rig()
        client = rig.connect(b"GET /x HTTP/1.0\r\n\r\n")
        rig.link().send(STREAM + b"2\r\nab\r\n0\r\n\r\n")
        assert client.got() == b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nab"
        assert client.transport.closed
        assert rig.app.endings == [Ending.COMPLETE]

    def test_a_cut_reply_to_http_1_0_is_a_reset_not_an_end(self) -> None:
        rig = Rig()
        client = rig.connect(b"GET /x HTTP/1.0\r\n\r\n")
        rig.link().send(STREAM + b"2\r\nab\r\n")
        rig.link().hang_up()
        assert client.transport.aborted
        assert rig.app.endings == [Ending.UPSTREAM_DIED]

    def test_http_1_0_with_keep_alive_goes_on_when_the_length_is_known(self) -> None:
        rig = Rig()
        client = rig.connect(b"GET /x HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")
        rig.link().send(OK)
        assert b"connection: keep-alive\r\n" in client.got()
        assert not client.transport.is_closing()

    def test_a_reply_to_head_is_complete_at_its_head(self) -> None:
        rig = Rig()
        client = rig.connect(b"HEAD /x HTTP/1.1\r\nhost: p\r\n\r\n")
        rig.link().send(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n")
        assert client.got() == b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n"
        assert rig.app.endings == [Ending.COMPLETE]
        assert rig.upstream.idle_count == 1

    @pytest.mark.parametrize("status", [204, 304])
    def test_statuses_without_body_are_complete_at_their_head(self, status: int) -> None:
        rig = Rig()
        client = rig.connect(GET)
        rig.link().send(b"HTTP/1.1 %d X\r\netag: a\r\n\r\n" % status)
        assert client.got() == b"HTTP/1.1 %d X\r\netag: a\r\n\r\n" % status
        assert rig.app.endings == [Ending.COMPLETE]

    def test_a_reply_delimited_by_close_becomes_chunked(self) -> None:
        rig = Rig()
        client = rig.connect(GET)
        rig.link().send(b"HTTP/1.1 200 OK\r\n\r\nab")
        rig.link().send(b"cd")
        rig.link().hang_up()
        assert client.got() == STREAM + b"2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"
        assert rig.app.endings == [Ending.COMPLETE]
        assert rig.upstream.idle_count == 0

    def test_delimited_by_close_and_reset_is_no_complete_reply(self) -> None:
        rig = Rig()
        client = rig.connect(GET)
        rig.link().send(b"HTTP/1.1 200 OK\r\n\r\nab")
        rig.link().break_off(ConnectionResetError())
        assert client.transport.aborted
        assert rig.app.endings == [Ending.UPSTREAM_DIED]

    @pytest.mark.parametrize(
        "reply",
        [b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc", STREAM + b"5\r\nab"],
        ids=["length", "chunked"],
    )
    def test_a_truncated_reply_ends_as_an_abort(self, reply: bytes) -> None:
        rig = Rig()
        client = rig.connect(GET)
        rig.link().send(reply)
        rig.link().hang_up()
        assert client.transport.aborted
        assert not client.got().endswith(b"0\r\n\r\n")
        assert rig.app.endings == [Ending.UPSTREAM_DIED]

    def test_a_broken_chunk_mid_stream_is_invalid_and_an_abort(self) -> None:
        rig = Rig()
        client = rig.connect(GET)
        rig.link().send(STREAM + b"2\r\nab\r\n")
        rig.link().send(b"zz\r\n")
        assert client.transport.aborted
        assert rig.app.endings == [Ending.UPSTREAM_INVALID]

    def test_a_redirect_to_the_upstream_itself_becomes_a_path(self) -> None:
        rig = Rig()
        client = rig.connect(GET)
        rig.link().send(b"HTTP/1.1 307 T\r\nlocation: http://10.0.0.9:8000/y?z\r\ncontent-length: 0\r\n\r\n")
        assert b"\r\nlocation: /y?z\r\n" in client.got()


def test_back_pressure_stops_the_upstream_until_the_client_takes_more() -> None:
    rig = Rig()
    client = rig.connect(GET)
    link = rig.link()
    link.send(STREAM)
    client.transport.clogged = True
    link.send(b"20000\r\n" + b"x" * 0x20000 + b"\r\n")
    assert not link.transport.reading
    client.transport.take(1 << 20)
    assert link.transport.reading
    link.send(b"0\r\n\r\n")
    assert rig.app.endings == [Ending.COMPLETE]


def test_a_link_goes_to_the_pool_reading() -> None:
    rig = Rig()
    client = rig.connect(GET)
    link = rig.link()
    client.transport.clogged = True
    link.send(b"HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n\r\n" + b"x" * 100_000)
    assert not link.transport.reading
    link.send(b"x" * 100_000)  # was read already when the pause came
    assert rig.app.endings == [Ending.COMPLETE]
    assert rig.upstream.idle_count == 1
    assert link.transport.reading


def test_a_client_that_did_not_take_the_last_reply_does_not_get_the_next_pushed_at_it() -> None:
    rig = Rig()
    client = rig.connect()
    client.transport.clogged = True
    rig.app.on_head = lambda x: x.respond(Reply(200, (), b"x" * 100_000))
    client.send(GET)
    rig.app.on_head = rig.app.collect_or_forward
    client.send(GET)
    assert rig.upstream.links == []
    client.transport.clogged = False
    client.transport.take(100_000)
    rig.link().send(STREAM)
    assert rig.app.heads


def test_the_body_is_given_back_when_the_response_starts() -> None:
    rig = Rig()
    rig.connect(POST)
    assert rig.app.budget.used == 5
    rig.link().send(STREAM)
    assert rig.app.budget.used == 0
    assert rig.app.endings == []


def test_an_empty_body_can_be_collected() -> None:
    rig = Rig()
    rig.app.on_head = lambda x: x.collect_body()
    rig.connect(GET)
    assert rig.app.bodies == [b""]


def test_an_upgrade_is_a_plain_request_without_its_upgrade() -> None:
    rig = Rig()
    client = rig.connect(b"GET /ws HTTP/1.1\r\nhost: p\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n")
    assert rig.link().got() == b"GET /ws HTTP/1.1\r\nhost: 10.0.0.9:8000\r\n\r\n"
    rig.link().send(OK)
    assert client.got().endswith(b"ok")
