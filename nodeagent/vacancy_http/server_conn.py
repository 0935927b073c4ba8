"""A client's connection: heads in, replies out, one exchange at a time.

Invariant: the parser sees one head at a time. What a client sends ahead (pipelining) is held back, up to the size of a
head, and then not read at all, until its turn comes; so replies keep the order of their requests without a queue.
A FIN while a reply is owed counts as a client that left: work for nobody must stop at once (issue A02), and a client
that half-closes and still waits cannot be told from it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from vacancy_http.body import Body, BodySink
from vacancy_http.chunked import ChunkedDecoder
from vacancy_http.exchange import Exchange
from vacancy_http.faults import Ending, MalformedError, ProtocolFault
from vacancy_http.head_check import check_partial
from vacancy_http.reply import Reply, reply_bytes
from vacancy_http.socket_state import peer_closed, reset_on_close
from vacancy_http.states import CONNECTION_NEXT, Connection, IllegalTransitionError
from vacancy_http.wheel import NEVER

if TYPE_CHECKING:
    from vacancy_http.server import Listener

IDLE, HEAD, BODY, REPLY, DRAIN, LINGER, CLOSING, CLOSED = Connection
_RESERVE_STEP = 64 << 10  # bytes that a chunked body grows its reservation by, at least
_HEAD_END = b"\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLOSE_LINE = b"connection: close\r\n"
_NO_ROOM = "the bodies held at once have no room for this one"
_KEEP_LINE = b"connection: keep-alive\r\n"
EVICTABLE = frozenset({IDLE, HEAD, LINGER})


class ServerConnection(asyncio.Protocol):
    """One connection of a client."""

    __slots__ = (
        "_buffer",
        "_decoder",
        "_drop_left",
        "_held",
        "_keep",
        "_left",
        "_limits",
        "_listener",
        "_minor",
        "_overall",
        "_owes_continue",
        "_pumping",
        "_served",
        "_sink",
        "_stall_deadline",
        "_stall_size",
        "_stalled",
        "app",
        "deadline",
        "exchange",
        "is_tls",
        "peer",
        "since",
        "state",
        "transport",
        "watch",
        "wheel",
    )

    transport: asyncio.Transport

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._limits = listener.limits
        self.app = listener.app
        self.wheel = listener.wheel
        self.state = IDLE
        self.exchange: Exchange | None = None
        self.deadline = NEVER
        self.watch = False
        self.since = 0.0
        self.peer: tuple[Any, ...] | None = None
        self.is_tls = False
        self._buffer = b""
        self._left = 0  # bytes of the body, by its Content-Length, that were not taken from the buffer
        self._decoder: ChunkedDecoder | None = None  # while a chunked body has not ended
        self._sink: BodySink | None = None  # while a body is collected
        self._owes_continue = False
        self._keep = True
        self._minor = 1
        self._served = False
        self._pumping = False
        self._held = False
        self._overall = NEVER
        self._drop_left = 0
        self._stalled = False
        self._stall_size = 0
        self._stall_deadline = NEVER

    # The transport's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client came."""
        self.transport = cast("asyncio.Transport", transport)
        self.peer = transport.get_extra_info("peername")
        self.is_tls = transport.get_extra_info("ssl_object") is not None
        if not self._listener.admit(self):
            self._move(CLOSED)
            self.transport.abort()
            return
        self.wheel.add(self)
        self.since = self.wheel.horizon
        self.deadline = self.since + self._limits.header_read_s

    def data_received(self, data: bytes) -> None:
        """Bytes of a client."""
        state = self.state
        if state <= HEAD:
            self._buffer = self._buffer + data if self._buffer else data
            self._pump()
        elif state is REPLY:
            self._hold(data)
        elif state is BODY:
            self._body_bytes(data)
        elif state is DRAIN:
            self._drain(data)
        elif state is LINGER:
            self._dropped(len(data))

    def eof_received(self) -> bool:
        """The client sends no more: it is gone when it is owed a reply."""
        if self.exchange is not None:
            self._gone()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._gone()

    def pause_writing(self) -> None:
        """The client takes less than comes for it."""
        self._stalled = True
        self.watch = True
        self._stall_size = self.transport.get_write_buffer_size()
        self._stall_deadline = self.wheel.horizon + self._limits.write_stall_s
        if self.exchange is not None and self.exchange.link is not None:
            self.exchange.link.pause()

    def resume_writing(self) -> None:
        """The client takes more."""
        self._stalled = False
        self.watch = self._held
        if self.exchange is not None and self.exchange.link is not None:
            self.exchange.link.resume()

    # The wheel's side.

    def on_deadline(self) -> None:
        """A limit of the state has passed."""
        state = self.state
        if state is IDLE:
            self._close()
        elif state is HEAD:
            self._refuse(MalformedError("the head did not come in time", ProtocolFault.HEADER_TIMEOUT))
        elif state is BODY and self.exchange is not None:
            self._keep = False
            self.exchange.fault(ProtocolFault.BODY_TIMEOUT, "the body did not come in time")
        else:
            self.abort()

    def on_tick(self, now: float) -> None:
        """Look for a client that stopped to take, or that left while it is not read."""
        if self._stalled:
            size = self.transport.get_write_buffer_size()
            if size < self._stall_size:
                self._stall_deadline = now + self._limits.write_stall_s
            self._stall_size = size
            if now >= self._stall_deadline:
                self._gone(Ending.CLIENT_STALLED)
                return
        if self._held and peer_closed(self.transport):
            self._gone()

    # The exchange's side.

    def collect(self, x: Exchange) -> None:
        """Collect the body of `x`; the body that came with its head is passed on within this call."""
        left = self._left
        buffer = self._buffer
        if self._decoder is None:
            if left > self._limits.max_body_bytes:
                x.fault(ProtocolFault.BODY_TOO_LARGE, self._too_large())
                return
            if not x.reserve(left):
                x.fault(ProtocolFault.BUDGET, _NO_ROOM)
                return
            if len(buffer) >= left:
                self._left = 0
                self._owes_continue = False
                self._buffer = buffer[left:]
                x.take_body(Body(buffer[:left]), left)
                return
        x.collecting()
        self._sink = BodySink(left)
        if self._owes_continue and not buffer:
            self.transport.write(_CONTINUE)
        self._owes_continue = False
        self._move(BODY)
        self._overall = self.wheel.horizon + self._limits.body_read_s
        self._buffer = b""
        self._await_more()
        if self._held:
            self._read_on()
        if buffer:
            self._body_bytes(buffer)

    def end_after_reply(self) -> None:
        """The reply's end is the connection's end."""
        self._keep = False

    def connection_line(self) -> bytes:
        """The Connection line of the coming reply, if it needs one."""
        if self._listener.closing:
            self._keep = False
        if self._keep:
            return b"" if self._minor else _KEEP_LINE
        return _CLOSE_LINE

    def send_reply(self, reply: Reply, *, head_only: bool) -> None:
        """Write an answer of our own."""
        if self._left > 2 * self._limits.max_body_bytes or (self._owes_continue and not self._buffer):
            self._keep = False  # the rest would not be read; or nobody knows whether there will be a body
        self.transport.write(reply_bytes(reply, head_only=head_only, connection=self.connection_line()))

    def reply_finished(self) -> None:
        """The reply is written and its exchange over: what comes next on this connection?"""
        if self.state >= CLOSING:
            return
        if self._left or self._decoder is not None:
            self._start_dropping()
        elif self._keep:
            self._move(IDLE)
            self.since = self.wheel.horizon
            self.deadline = self.since + self._limits.keep_alive_s
            if self._buffer:
                self._pump()
            if self._held and (self.state is not REPLY or len(self._buffer) <= self._limits.max_head_bytes):
                self._read_on()
        else:
            self._close()

    def abort(self) -> None:
        """End the connection so that the client cannot take what it has for a complete reply."""
        if self.state is not CLOSED:
            self._move(CLOSED)
            self._forgotten()
            reset_on_close(self.transport)
            self.transport.abort()

    def cut(self) -> None:
        """The listener's grace is over."""
        x = self.exchange
        self.abort()
        if x is not None:
            x.client_lost(Ending.CANCELLED)

    def shut(self) -> None:
        """The listener closes: go now if nothing is owed, else after the reply."""
        self._keep = False
        if self.state in EVICTABLE:
            self._close()

    # Heads.

    def _pump(self) -> None:
        """Take heads from the buffer while it is their turn; a loop, as replies may be instant."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._buffer and self.state <= HEAD:
                data = self._buffer
                end = data.find(_HEAD_END)
                if end < 0:
                    self._head_part(data)
                    break
                if end > self._limits.max_head_bytes - 4:
                    raise self._too_long()
                x = Exchange(self, data[: end + 4], self._limits.max_headers)
                self._buffer = data[end + 4 :]
                self._begin(x)
        except MalformedError as error:
            self._refuse(error)
        finally:
            self._pumping = False

    def _begin(self, x: Exchange) -> None:
        self._served = True
        self._minor = x.minor
        self._keep = x.keep_alive
        self._left = x.content_length
        self._owes_continue = x.expects_continue
        if x.chunked:
            self._decoder = ChunkedDecoder()
        self.deadline = NEVER
        self._move(REPLY)
        self.exchange = x
        self._listener.counters.requests += 1
        self.app.head_received(x)

    def _too_long(self) -> MalformedError:
        return MalformedError(
            f"the head is over {self._limits.max_head_bytes} bytes", ProtocolFault.HEAD_TOO_LARGE
        )

    def _head_part(self, data: bytes) -> None:
        if len(data) > self._limits.max_head_bytes:
            raise self._too_long()
        if self.state is IDLE:
            check_partial(data)
            self._move(HEAD)
            if self._served:
                self.deadline = self.wheel.horizon + self._limits.header_read_s

    def _refuse(self, error: MalformedError) -> None:
        """Answer a head that has no single reading, and read no more of this client's requests."""
        self._listener.counters.malformed += 1
        self._keep = False
        self.transport.write(
            reply_bytes(
                self.app.fault_reply(error.fault, error.detail), head_only=False, connection=_CLOSE_LINE
            ),
        )
        self._start_dropping()

    def _hold(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > self._limits.max_head_bytes and not self._held:
            self._held = True
            self.watch = True
            self.transport.pause_reading()

    def _read_on(self) -> None:
        self._held = False
        self.watch = self._stalled
        self.transport.resume_reading()

    # Bodies.

    def _body_bytes(self, data: bytes) -> None:
        x = self.exchange
        sink = self._sink
        assert x is not None  # noqa: S101 - state BODY has both
        assert sink is not None  # noqa: S101
        self._await_more()
        try:
            payload = self._take(data)
        except MalformedError as error:
            self._keep = False
            x.fault(error.fault, error.detail)
            return
        total = sink.length + len(payload)
        if total > self._limits.max_body_bytes:
            x.fault(ProtocolFault.BODY_TOO_LARGE, self._too_large())
        elif total > x.reserved and not x.reserve(max(total - x.reserved, _RESERVE_STEP)):
            x.fault(ProtocolFault.BUDGET, _NO_ROOM)
        else:
            sink.write(payload)
            if not self._left and self._decoder is None:
                self._sink = None
                self._move(REPLY)
                self.deadline = NEVER
                x.take_body(sink.finish(), total)

    def _take(self, data: bytes) -> bytes:
        """What of `data` is payload of the body under way; what lies behind the body goes to the buffer."""
        decoder = self._decoder
        if decoder is None:
            left = self._left
            if len(data) > left:
                self._buffer = data[left:]
                data = data[:left]
            self._left = left - len(data)
            return data
        payload = decoder.feed(data)
        if decoder.done:
            self._buffer = decoder.rest
            self._decoder = None
        return payload

    def _start_dropping(self) -> None:
        """The reply is out; drop what the client still sends, so that it sees the reply and not a reset."""
        if self._sink is not None:
            self._sink.discard()
            self._sink = None
        self._drop_left = 2 * self._limits.max_body_bytes
        self._overall = self.wheel.horizon + self._limits.body_read_s
        buffer, self._buffer = self._buffer, b""
        self._await_more()
        if self._held:
            self._read_on()
        if self._keep:
            self._move(DRAIN)
            self._drain(buffer)
        else:
            self._move(LINGER)
            if self.transport.can_write_eof():
                self.transport.write_eof()

    def _drain(self, data: bytes) -> None:
        try:
            self._take(data)
        except MalformedError:
            self.abort()
            return
        if self._left or self._decoder is not None:
            self._dropped(len(data))
        else:
            self.reply_finished()

    def _dropped(self, n: int) -> None:
        self._drop_left -= n
        if self._drop_left < 0:
            self.abort()
        else:
            self._await_more()

    def _await_more(self) -> None:
        self.deadline = min(self._overall, self.wheel.horizon + self._limits.body_idle_s)

    def _too_large(self) -> str:
        return f"the body is over {self._limits.max_body_bytes} bytes"

    # Ends.

    def _close(self) -> None:
        self._move(CLOSING)
        self.deadline = self.wheel.horizon + self._limits.write_stall_s
        self.transport.close()

    def _gone(self, ending: Ending = Ending.CLIENT_GONE) -> None:
        if self.state is not CLOSED:
            self._move(CLOSED)
            self._forgotten()
            self.transport.abort()
        if self.exchange is not None:
            self.exchange.client_lost(ending)

    def _forgotten(self) -> None:
        self.wheel.discard(self)
        self._listener.forget(self)
        if self._sink is not None:
            self._sink.discard()
            self._sink = None

    def _move(self, state: Connection) -> None:
        if state not in CONNECTION_NEXT[self.state]:
            raise IllegalTransitionError(f"client connection: {self.state.name} to {state.name}")
        self.state = state
