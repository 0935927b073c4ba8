"""A connection to an upstream: one exchange at a time, and nothing of one in the next.

Invariant: a connection goes back to the pool only when the request was sent whole, the response ended exactly
where the bytes ended, and the upstream keeps it open. Whatever comes while it rests makes it dirty: it is
closed. The upstream's connection is never half-closed: many servers take that for a client that left.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from vacancy_http.chunked import ChunkedDecoder, one_chunk
from vacancy_http.exchange_base import MOST_JOINED
from vacancy_http.faults import Ending, MalformedError
from vacancy_http.head_memo import whole_body
from vacancy_http.response_parser import ParsedResponse, parse_response_head
from vacancy_http.socket_state import readable_probe
from vacancy_http.states import LINK_NEXT, IllegalTransitionError, Link
from vacancy_http.wheel import NEVER, Wheel

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_http.exchange import Exchange
    from vacancy_http.upstream import Upstream

CONNECTING, IDLE, HEAD, BODY, TUNNEL, FLUSHING, CLOSED = Link
_HEAD_END = b"\r\n\r\n"
_MAX_HEAD = 65536  # bytes; of all interim responses and the final head together
_SLICE = 256 << 10  # bytes of a large body that are written at once
_SWITCHING, _OK = 101, 200
_UNTIL_CLOSE = -1


class UpstreamConnection(asyncio.Protocol):
    """One connection to an upstream."""

    __slots__ = (
        "_buffer",
        "_decoder",
        "_head_s",
        "_idle_s",
        "_keep",
        "_left",
        "_paused",
        "_poll",
        "_position",
        "_received",
        "_reused",
        "_upstream",
        "_view",
        "_wheel",
        "_write_paused",
        "deadline",
        "exchange",
        "state",
        "transport",
        "watch",
    )

    transport: asyncio.Transport

    def __init__(self, upstream: Upstream, wheel: Wheel, x: Exchange) -> None:
        self._upstream = upstream
        limit = upstream.limits.response_head_s
        self._head_s = NEVER if limit is None else limit
        self._idle_s = upstream.limits.idle_s
        self._wheel = wheel
        self.exchange: Exchange | None = x
        self.state = CONNECTING
        self.watch = False
        self.deadline = wheel.horizon + upstream.limits.connect_s
        self._poll: Callable[[int], list[Any]] | None = None
        self._buffer = b""
        self._received = 0
        self._decoder: ChunkedDecoder | None = None
        self._left = 0
        self._keep = False
        self._reused = False
        self._paused = False
        self._write_paused = False
        self._view: memoryview | None = None
        self._position = 0
        wheel.add(self)
        self.deadline = wheel.horizon + upstream.limits.connect_s

    # The exchange's side.

    def reuse(self, x: Exchange) -> bool:
        """Send the request of `x`; False, and the connection closed, if bytes or a FIN came in the pool."""
        poll, transport, body = self._poll, self.transport, x.payload
        if (poll is not None and poll(0)) or transport.is_closing():
            self.abort()
            return False
        self._reused = True
        if not x.plain or not isinstance(body, bytes):
            self.send(x)
            return True
        # As `send`, in the path of every request; it comes from the pool, so its state is IDLE.
        self.state = HEAD
        self.deadline = self._wheel.horizon + self._head_s
        self.exchange = x
        self._received = 0
        x.link = self
        x.sent_to_upstream = x.request_sent = True
        transport.write(b"".join((x.request, b"%d" % len(body), _HEAD_END, body)))
        return True

    def abort(self) -> None:
        """Close at once; the exchange hears nothing more of this connection."""
        self.exchange = None
        if self.state is not CLOSED:
            connecting = self.state is CONNECTING
            self._move(CLOSED)
            self._wheel.discard(self)
            self._upstream.forget(self)
            self._view = None
            if not connecting:
                self.transport.abort()

    def pause(self) -> None:
        """Read no more until `resume`: the client does not take what is there."""
        if not self._paused and self.state in {HEAD, BODY, TUNNEL}:
            self._paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._paused:
            self._paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()

    def connect_failed(self, why: str) -> None:
        """The connection could not be made."""
        self._fail(Ending.UPSTREAM_UNREACHABLE, why)

    # The wheel's side.

    def on_deadline(self) -> None:
        """Too long in the pool, or without a connection or a head."""
        if self.state is CONNECTING:
            self._fail(Ending.UPSTREAM_UNREACHABLE, "the upstream did not accept a connection in time")
        elif self.state is HEAD:
            self._fail(Ending.UPSTREAM_TIMEOUT, "the upstream did not answer in time")
        else:
            self.abort()

    def on_tick(self, now: float) -> None:
        """Never asked for."""

    # The transport's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send what waits for this connection."""
        self.transport = cast("asyncio.Transport", transport)
        x = self.exchange
        if self.state is CLOSED or x is None:
            self.transport.abort()
            return
        self._poll = readable_probe(transport)
        self.send(x)

    def data_received(self, data: bytes) -> None:
        """Bytes of the response, or bytes that nobody asked for."""
        x = self.exchange
        if self.state is HEAD:
            around = self._upstream.around
            if around is not None and x is not None and x.plain and not (self._received or self._paused):
                body = whole_body(data, around)
                if body is not None:
                    self._plain(x, self._upstream.plain, body)
                    return
        elif x is not None and x.whole is None and self._decoder is not None and self._decoder.between:
            payload = one_chunk(data)
            if payload is not None:
                x.pass_chunk(data, payload)
                return
        try:
            if self.state is HEAD:
                self._head_bytes(data)
            elif self.state is BODY:
                self._body_bytes(data)
            else:
                self.abort()
        except MalformedError as error:
            self._fail(Ending.UPSTREAM_INVALID, error.detail)

    def eof_received(self) -> bool:
        """The upstream sends no more."""
        self._lost(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._lost(exc)

    def pause_writing(self) -> None:
        """The upstream takes the body slower than it comes."""
        self._write_paused = True

    def resume_writing(self) -> None:
        """The upstream takes more."""
        self._write_paused = False
        self._send_slice()

    # Sending.

    def send(self, x: Exchange) -> None:
        """Send the request of `x`: on a new connection, or on one from the pool that is clean."""
        if self.state is IDLE:
            self.state = HEAD
        else:
            self._move(HEAD)
        self.deadline = self._wheel.horizon + self._head_s
        self.exchange = x
        self._received = 0
        x.link = self
        x.sent_to_upstream = True
        payload = x.payload
        if payload is None:
            self.transport.write(x.request)
        elif (size := len(payload)) <= MOST_JOINED:
            data = payload if isinstance(payload, bytes) else payload.bytes
            self.transport.write(b"".join((x.request, b"%d" % size, _HEAD_END, data)))
        else:
            self.transport.write(b"%b%d\r\n\r\n" % (x.request, size))
            self._view = memoryview(payload) if isinstance(payload, bytes) else payload.view()
            self._position = 0
            self._send_slice()
            return
        x.request_sent = True  # as `sent_whole`; no response has come

    def _send_slice(self) -> None:
        """Write the next slice; one for each turn of the loop, so that streams beside it go on."""
        view = self._view
        if view is None or self._write_paused:
            return
        end = self._position + _SLICE
        self.transport.write(view[self._position : end])
        self._position = end
        if end >= len(view):
            self._view = None
            if self.exchange is not None:
                self.exchange.sent_whole()
        else:
            self._wheel.loop.call_soon(self._send_slice)

    # Receiving.

    def _plain(self, x: Exchange, head: ParsedResponse, body: bytes) -> None:
        """The short way of a reply that came whole in one piece, with a head that was read before."""
        x.link = None
        upstream = self._upstream
        idle = upstream.idle
        if len(idle) < upstream.room:  # as `put_back`
            idle.append(self)
            self.state = IDLE
            self.exchange = None
            self.deadline = self._wheel.horizon + self._idle_s
        else:
            self.abort()
        x.plain_response(head, body)

    def _head_bytes(self, data: bytes) -> None:
        x = self.exchange
        assert x is not None  # noqa: S101 - state HEAD has one
        self._received += len(data)
        if self._buffer:
            data = self._buffer + data
        while True:
            end = data.find(_HEAD_END)
            size = len(data) if end < 0 else end
            if self._received - len(data) + size > _MAX_HEAD:
                raise MalformedError("the upstream's head is too large")
            if end < 0:
                self._buffer = data
                return
            raw = data[: end + 4]
            head = parse_response_head(raw, x.method, self._upstream.heads)
            if head.source.around is not None:
                self._upstream.plain, self._upstream.around = head.source, head.source.around
            data = data[end + 4 :]
            if head.status >= _OK:
                break
            if head.status == _SWITCHING:
                self._buffer = b""
                self._switched(x, head, raw, data)
                return
        self._buffer = b""
        self._first(x, head, data)

    def _switched(self, x: Exchange, head: ParsedResponse, raw: bytes, data: bytes) -> None:
        """A 101 came, as `raw`, and `data` behind it."""
        del x, head, raw, data
        raise MalformedError("the upstream switches protocols unasked")

    def _first(self, x: Exchange, head: ParsedResponse, data: bytes) -> None:
        """The head is complete; `data` came behind it."""
        self.deadline = NEVER
        self._keep = head.keep_alive
        rest = b""
        if head.chunked:
            decoder = ChunkedDecoder()
            payload = decoder.feed(data) if data else b""
            complete = decoder.done
            rest = decoder.rest
            self._decoder = None if complete else decoder
        elif head.length is None:
            self._keep = False
            self._left = _UNTIL_CLOSE
            payload, complete = data, False
        else:
            payload, rest = (
                (data, b"") if len(data) <= head.length else (data[: head.length], data[head.length :])
            )
            self._left = head.length - len(payload)
            complete = self._left == 0
        if complete:
            self._finish(x, dirty=bool(rest))
        else:
            self._move(BODY)
        x.response_head(head, payload, complete=complete)

    def _body_bytes(self, data: bytes) -> None:
        x = self.exchange
        assert x is not None  # noqa: S101 - state BODY has one
        decoder = self._decoder
        rest = b""
        if decoder is not None:
            data = decoder.feed(data)
            complete = decoder.done
            rest = decoder.rest
        elif self._left == _UNTIL_CLOSE:
            complete = False
        else:
            if len(data) > self._left:
                data, rest = data[: self._left], data[self._left :]
            self._left -= len(data)
            complete = self._left == 0
        if complete:
            self._finish(x, dirty=bool(rest))
        x.response_data(data, complete=complete)

    def _finish(self, x: Exchange, *, dirty: bool) -> None:
        """The response is whole: back to the pool, or closed."""
        x.link = None
        self._decoder = None
        self.resume()
        if self._keep and not dirty and self._view is None and self._upstream.put_back(self):
            self._move(IDLE)
            self.exchange = None
            self.deadline = self._wheel.horizon + self._idle_s
        else:
            self.abort()

    def _lost(self, exc: Exception | None) -> None:
        x = self.exchange
        if self.state is CLOSED or x is None:
            self.abort()
        elif self.state is BODY and self._left == _UNTIL_CLOSE and self._decoder is None and exc is None:
            self._finish(x, dirty=True)
            x.response_data(b"", complete=True)
        elif self.state is HEAD and self._reused and not self._received:
            self.abort()
            x.link = None
            if not x.retry():
                x.upstream_failed(
                    Ending.UPSTREAM_DIED, "the upstream closed the connection without an answer"
                )
        else:
            self._fail(
                Ending.UPSTREAM_DIED, "the upstream closed the connection before its answer was complete"
            )

    def _fail(self, ending: Ending, detail: str) -> None:
        x = self.exchange
        self.abort()
        if x is not None:
            x.upstream_failed(ending, detail)

    def _move(self, state: Link) -> None:
        if state not in LINK_NEXT[self.state]:
            raise IllegalTransitionError(f"upstream connection: {self.state.name} to {state.name}")
        self.state = state
