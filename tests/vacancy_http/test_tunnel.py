"""A tunnel's life in driven time: how it is asked for, opened, used and ended, each end told once."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standins.http_engine import OK, POST, Rig
from standins.websocket_text import agreed, handshake, opened, tunnel_rig
from vacancy_http import Ending, ListenerLimits, ProtocolFault, Reply, UpstreamLimits
from vacancy_http.states import Connection, IllegalTransitionError, Phase

if TYPE_CHECKING:
    from vacancy_http import Exchange

GONE = Reply(503, (), b"taken back")


class TestTheHandshake:
    def test_goes_on_with_the_upstreams_own_authority_and_what_the_application_says(self) -> None:
        rig = Rig()
        rig.app.on_head = lambda x: x.tunnel(
            rig.upstream,
            target=b"/other?x=1",
            drop=frozenset({b"origin", b"authorization"}),
            add=((b"authorization", b"Bearer own"),),
        )
        rig.connect(
            handshake(
                origin=b"http://proxy",
                authorization=b"Bearer theirs",
                sec_websocket_protocol=b"a",
                proxy_authorization=b"x",
                te=b"trailers",
                cookie=b"c=d",
            )
        )
        first, *lines = rig.link().got().split(b"\r\n")
        assert first == b"GET /other?x=1 HTTP/1.1"
        assert sorted(lines) == sorted(
            [
                b"host: 10.0.0.9:8000",
                b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
                b"sec-websocket-version: 13",
                b"sec-websocket-protocol: a",
                b"cookie: c=d",
                b"authorization: Bearer own",
                b"connection: Upgrade",
                b"upgrade: websocket",
                b"",
                b"",
            ]
        )

    def test_that_is_none_is_answered_by_the_engine(self) -> None:
        rig = tunnel_rig()
        client = rig.connect(handshake(sec_websocket_version=b"8"))
        assert [fault for fault, _ in rig.app.faults] == [ProtocolFault.BAD_REQUEST]
        assert client.got().startswith(b"HTTP/1.1 400 ")
        assert client.transport.closed
        assert rig.app.endings == [Ending.ANSWERED]
        assert rig.upstream.links == []

    def test_with_a_body_whose_length_alone_differs_from_a_head_read_before_is_none(self) -> None:
        rig = tunnel_rig()
        opening = handshake(content_length=b"0").replace(b"content-length", b"Content-Length")
        rig.connect(opening)
        client = rig.connect(opening.replace(b"Content-Length: 0", b"Content-Length: 5") + b"hello")
        assert client.got().startswith(b"HTTP/1.1 400 ")
        assert len(rig.upstream.links) == 1

    def test_is_not_sent_for_a_client_that_has_left(self) -> None:
        rig = Rig()
        kept: list[Exchange] = []
        rig.app.on_head = kept.append
        client = rig.connect(handshake())
        client.hang_up()
        kept[0].tunnel(rig.upstream, target=b"/", drop=frozenset(), add=())
        assert rig.upstream.links == []
        assert rig.app.endings == [Ending.CLIENT_GONE]

    def test_is_decided_once(self) -> None:
        rig = tunnel_rig()
        rig.connect(handshake())
        x = rig.app.seen[0]
        with pytest.raises(IllegalTransitionError):
            x.tunnel(rig.upstream, target=b"/", drop=frozenset(), add=())

    def test_takes_no_connection_from_the_pool_and_leaves_none_there(self) -> None:
        rig = Rig()
        other = rig.connect(POST)
        rig.link().send(OK)
        assert other.got().endswith(b"ok")
        assert rig.upstream.idle_count == 1
        rig.app.on_head = lambda x: x.tunnel(rig.upstream, target=b"/", drop=frozenset(), add=())
        client = rig.connect(handshake())
        assert len(rig.upstream.links) == 2
        rig.link().send(OK)  # the very head of a reply that was plain before
        assert client.got() == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
        assert client.transport.closed
        assert rig.upstream.idle_count == 1
        assert rig.link().transport.aborted
        assert rig.listener.counters.tunnels == 0
        assert rig.app.endings == [Ending.COMPLETE, Ending.COMPLETE]


class TestTheAnswer:
    def test_of_another_status_is_an_ordinary_reply_whatever_its_framing(self) -> None:
        rig = tunnel_rig()
        client = rig.connect(handshake())
        rig.link().send(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n")
        rig.link().send(b"HTTP/1.1 403 Forbidden\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n")
        got = client.got()
        assert got.startswith(b"HTTP/1.1 403 Forbidden\r\n")
        assert got.endswith(b"2\r\nno\r\n0\r\n\r\n")
        assert b"101" not in got
        assert rig.app.endings == [Ending.COMPLETE]
        assert client.transport.closed
        assert rig.listener.counters.tunnels == 0

    def test_that_agrees_opens_it_and_what_came_behind_its_head_follows(self) -> None:
        rig = tunnel_rig()
        client = rig.connect(handshake())
        rig.link().send(
            b"HTTP/1.1 100 Continue\r\n\r\n"
            + agreed(more=b"Server: x\r\nContent-Length: 0\r\n")
            + b"\x81\x02hi"
        )
        head, _, rest = client.got().partition(b"\r\n\r\n")
        assert sorted(head.split(b"\r\n")) == [
            b"HTTP/1.1 101 Switching Protocols",
            b"connection: Upgrade",
            b"sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
            b"server: x",
            b"upgrade: websocket",
        ]
        assert rest == b"\x81\x02hi"
        assert rig.app.heads[-1].status == 101
        assert rig.app.seen[0].phase is Phase.STREAMING
        assert rig.app.endings == []

    @pytest.mark.parametrize(
        "reply",
        [
            agreed(b"AAAAAAAAAAAAAAAAAAAAAA=="),
            agreed().replace(b"websocket", b"h2c"),
            b"HTTP/1.1 101 Switching\r\n\r\n",
            b"junk\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        ],
    )
    def test_that_is_invalid_is_502(self, reply: bytes) -> None:
        rig = tunnel_rig()
        client = rig.connect(handshake())
        rig.link().send(reply)
        assert client.got().startswith(b"HTTP/1.1 502 ")
        assert rig.app.endings == [Ending.UPSTREAM_INVALID]
        assert rig.link().transport.aborted
        assert client.transport.closed

    def test_that_never_comes_is_504_when_a_silent_tunnel_would_end(self) -> None:
        rig = tunnel_rig(limits=ListenerLimits(tunnel_idle_s=30))
        client = rig.connect(handshake())
        rig.loop.advance(29)
        assert client.got() == b""
        rig.loop.advance(2)
        assert client.got().startswith(b"HTTP/1.1 504 ")
        assert rig.app.endings == [Ending.UPSTREAM_TIMEOUT]

    def test_has_the_limit_of_its_upstream_where_there_is_one(self) -> None:
        rig = tunnel_rig(upstream_limits=UpstreamLimits(response_head_s=5))
        client = rig.connect(handshake())
        rig.loop.advance(6)
        assert client.got().startswith(b"HTTP/1.1 504 ")

    def test_of_nobody_is_503(self) -> None:
        rig = tunnel_rig()
        rig.upstream.connects = False
        client = rig.connect(handshake())
        assert client.got().startswith(b"HTTP/1.1 503 ")
        assert rig.app.endings == [Ending.UPSTREAM_UNREACHABLE]
        assert rig.listener.counters.tunnels == 0

    def test_may_be_cancelled_by_the_application_as_it_comes(self) -> None:
        rig = tunnel_rig()
        rig.app.on_response = lambda x, _head: x.cancel(GONE)
        client = rig.connect(handshake())
        rig.link().send(agreed() + b"x")
        assert client.got() == b""
        assert client.transport.aborted
        assert rig.app.endings == [Ending.CANCELLED]


class TestBytes:
    def test_that_came_with_the_handshake_or_before_the_101_go_first_and_none_is_lost(self) -> None:
        rig = tunnel_rig()
        client = rig.connect(handshake() + b"with")
        client.send(b" before ")
        server = rig.link()
        assert server.got().endswith(b"\r\n\r\n")
        assert client.got() == b""
        server.send(agreed())
        client.send(b"after")
        assert server.got() == b"with before after"

    def test_that_come_early_are_bounded(self) -> None:
        rig = tunnel_rig(limits=ListenerLimits(max_head_bytes=1000))
        client = rig.connect(handshake() + b"a" * 600)
        assert client.transport.reading
        client.send(b"b" * 600)
        assert not client.transport.reading
        server = rig.link()
        server.got()
        server.send(agreed())
        assert client.transport.reading
        assert server.got() == b"a" * 600 + b"b" * 600

    def test_after_a_refused_handshake_are_never_read_as_a_request(self) -> None:
        rig = tunnel_rig()
        client = rig.connect(handshake() + b"GET /smuggled HTTP/1.1\r\nhost: p\r\n\r\n")
        rig.link().send(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        assert client.got().startswith(b"HTTP/1.1 400 ")
        assert [x.path for x in rig.app.seen] == [b"/ws"]
        assert client.transport.closed

    @settings(max_examples=60)
    @given(seed=st.integers(0, 2**32))
    def test_pass_unchanged_whatever_the_split(self, seed: int) -> None:
        rng = Random(seed)  # noqa: S311 - where to split
        rig = tunnel_rig()
        up, down = rng.randbytes(rng.randrange(3000)), rng.randbytes(rng.randrange(3000))
        to_server, to_client = handshake() + up, agreed() + down
        client = rig.connect()
        sent = received = 0
        while sent < len(to_server) or received < len(to_client):
            if sent < len(to_server) and (rng.random() < 0.5 or received >= len(to_client)):
                step = rng.choice((1, 2, 40, 400, 5000))
                client.send(to_server[sent : sent + step])
                sent += step
            elif rig.upstream.links and received < len(to_client):
                step = rng.choice((1, 2, 40, 400, 5000))
                rig.link().send(to_client[received : received + step])
                received += step
        assert rig.link().got().partition(b"\r\n\r\n")[2] == up
        assert client.got().partition(b"\r\n\r\n")[2] == down
        assert rig.app.seen[0].response_bytes == len(down)


class TestEnds:
    def test_the_upstreams_close_is_the_clients_with_everything_that_came_before(self) -> None:
        rig = tunnel_rig()
        client = opened(rig)
        server = rig.link()
        client.transport.clogged = True
        server.send(b"bye")
        server.hang_up()
        assert rig.app.endings == [Ending.TUNNEL_ENDED]
        assert client.got() == b"bye"
        assert client.transport.closed
        assert not client.transport.aborted  # three bytes still have to leave
        rig.loop.advance(61)
        assert client.transport.aborted

    def test_the_clients_close_is_the_upstreams_with_everything_that_came_before(self) -> None:
        rig = tunnel_rig()
        client = opened(rig)
        server = rig.link()
        server.transport.clogged = True
        client.send(b"bye")
        client.hang_up()
        assert rig.app.endings == [Ending.CLIENT_GONE]
        assert server.got() == b"bye"
        assert server.transport.closed
        assert not server.transport.aborted
        assert rig.listener.counters.tunnels == 1  # until it is gone
        rig.loop.advance(61)
        assert server.transport.aborted
        assert rig.listener.counters.tunnels == 0

    def test_a_broken_client_takes_the_upstream_with_it(self) -> None:
        rig = tunnel_rig()
        client = opened(rig)
        client.break_off(ConnectionResetError())
        assert rig.app.endings == [Ending.CLIENT_GONE]
        assert rig.link().transport.aborted

    def test_a_broken_upstream_is_seen_as_broken(self) -> None:
        rig = tunnel_rig()
        client = opened(rig)
        rig.link().break_off(ConnectionResetError())
        assert rig.app.endings == [Ending.UPSTREAM_DIED]
        assert client.transport.aborted
        assert client.got() == b""

    def test_silence_ends_it_and_a_byte_of_either_side_is_none(self) -> None:
        rig = tunnel_rig(limits=ListenerLimits(tunnel_idle_s=600))
        client = opened(rig)
        rig.loop.advance(590)
        client.send(b"x")
        rig.loop.advance(590)
        rig.link().send(b"y")
        rig.loop.advance(590)
        assert rig.app.endings == []
        rig.loop.advance(20)
        assert rig.app.endings == [Ending.TUNNEL_IDLE]
        assert client.transport.closed
        assert rig.link().transport.aborted

    def test_a_cancel_aborts_both(self) -> None:
        rig = tunnel_rig()
        client = opened(rig)
        rig.app.seen[0].cancel(GONE)
        assert rig.app.endings == [Ending.CANCELLED]
        assert client.got() == b""
        assert client.transport.aborted
        assert rig.link().transport.aborted

    def test_a_cancel_before_the_answer_is_a_reply(self) -> None:
        rig = tunnel_rig()
        client = rig.connect(handshake())
        rig.app.seen[0].cancel(GONE)
        assert client.got().startswith(b"HTTP/1.1 503 ")
        assert client.transport.closed
        assert rig.app.endings == [Ending.CANCELLED]

    def test_a_client_may_leave_before_the_answer(self) -> None:
        rig = tunnel_rig()
        client = rig.connect(handshake())
        client.hang_up()
        assert rig.app.endings == [Ending.CLIENT_GONE]
        assert rig.link().transport.aborted
        assert rig.listener.counters.tunnels == 0

    def test_a_connection_that_never_was_made_is_given_up(self) -> None:
        rig = tunnel_rig(upstream_limits=UpstreamLimits(connect_s=5))
        rig.upstream.waits = True
        client = rig.connect(handshake())
        rig.loop.advance(6)
        assert client.got().startswith(b"HTTP/1.1 503 ")
        assert rig.listener.counters.tunnels == 0

    def test_a_listener_that_closes_cuts_what_its_grace_leaves(self) -> None:
        rig = tunnel_rig()
        client = opened(rig)
        client.protocol.shut()
        assert client.protocol.state is Connection.TUNNEL
        client.protocol.cut()
        assert rig.app.endings == [Ending.CANCELLED]
        assert client.transport.aborted
        assert rig.link().transport.aborted

    def test_nothing_of_the_connection_is_used_again(self) -> None:
        rig = tunnel_rig()
        client = opened(rig)
        rig.link().hang_up()
        client.send(b"GET /x HTTP/1.1\r\nhost: p\r\n\r\n")
        assert len(rig.app.seen) == 1
        assert len(rig.listener._connections) == 0
        assert len(rig.listener.wheel) == 0


class TestTheCap:
    def test_counts_what_is_open_or_asked_for(self) -> None:
        rig = tunnel_rig(limits=ListenerLimits(max_tunnels=2))
        first = opened(rig)
        rig.connect(handshake())
        assert rig.listener.counters.tunnels == 2
        third = rig.connect(handshake())
        assert third.got().startswith(b"HTTP/1.1 503 ")
        assert [fault for fault, _ in rig.app.faults] == [ProtocolFault.TUNNEL_CAP]
        assert rig.app.seen[-1].tunnels_full
        first.hang_up()
        rig.connect(handshake())
        assert len(rig.upstream.links) == 3

    def test_may_be_none_at_all(self) -> None:
        rig = tunnel_rig(limits=ListenerLimits(max_tunnels=0))
        assert rig.connect(handshake()).got().startswith(b"HTTP/1.1 503 ")

    def test_a_tunnel_is_a_connection_and_makes_no_room_for_others(self) -> None:
        rig = tunnel_rig(limits=ListenerLimits(max_connections=1))
        client = opened(rig)
        other = rig.connect()
        assert other.transport.aborted
        assert not client.transport.aborted
