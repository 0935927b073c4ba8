"""Request bodies of a client's connection: collected within limit and budget, or dropped.

Invariant: bytes of a body are taken in only after they were reserved, so memory stays bounded however many
clients send at once.
A refused body is read and dropped, up to twice the limit: a client that is still sending would otherwise find
its connection reset and never see the refusal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_http.body import BodySink
from vacancy_http.faults import MalformedError, ProtocolFault
from vacancy_http.reply import Reply, reply_bytes
from vacancy_http.server_base import BODY, CLOSING, DRAIN, IDLE, LINGER, REPLY, ClientConnection
from vacancy_http.wheel import NEVER

if TYPE_CHECKING:
    from vacancy_http.chunked import ChunkedDecoder
    from vacancy_http.exchange import Exchange
    from vacancy_http.server import Listener

NO_ROOM = "the bodies held at once have no room for this one"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_RESERVE_STEP = 64 << 10  # bytes by which a chunked body's reservation grows, where there is room


class BodyReader(ClientConnection):
    """The part of a client's connection that reads bodies and knows when a message is over."""

    __slots__ = ("_buffer", "_decoder", "_drop_left", "_later", "_left", "_overall", "_owes_continue")

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener)
        self._buffer = b""  # received and not taken yet
        self._left = 0  # bytes of the body, by its Content-Length, that were not taken from the buffer
        self._decoder: ChunkedDecoder | None = None  # while a chunked body has not ended
        self._owes_continue = False
        self._overall = NEVER
        self._drop_left = 0
        self._later = False  # heads wait for the next turn of the loop, or for the client to take replies

    def pump(self) -> None:
        """Take heads from the buffer."""
        raise NotImplementedError

    def collect(self, x: Exchange) -> None:
        """Collect the body of `x`, which did not come whole with its head."""
        left = self._left
        buffer = self._buffer
        if self._decoder is None:
            if left > self._limits.max_body_bytes:
                x.fault(ProtocolFault.BODY_TOO_LARGE, self._too_large())
                return
            if not self.app.budget.reserve(left):
                x.fault(ProtocolFault.BUDGET, NO_ROOM)
                return
            x.reserved = left
        x.collecting()
        self._sink = BodySink(left)
        if self._owes_continue and not buffer:
            self.transport.write(_CONTINUE)
        self._owes_continue = False
        self._move(BODY)
        self._overall = self.wheel.horizon + self._limits.body_read_s
        self._buffer = b""
        self._await_more()
        if buffer:
            self._body_bytes(buffer)

    def send_reply(self, reply: Reply, *, head_only: bool) -> None:
        """Write an answer of our own."""
        if self._left > 2 * self._limits.max_body_bytes or (self._owes_continue and not self._buffer):
            self.keep = False  # the rest would not be read; or nobody knows whether there will be a body
        self.transport.write(reply_bytes(reply, head_only=head_only, connection=self.connection_line()))

    def reply_finished(self) -> None:
        """The reply is written and its exchange over: what comes next on this connection?"""
        if self._left or self._decoder is not None or self.state >= CLOSING:
            self._rest_follows()
        elif self.keep:
            if self.state is REPLY:
                self.state = IDLE
            else:
                self._move(IDLE)
            self.since = now = self.wheel.horizon
            self.deadline = now + self._limits.keep_alive_s
            if self._buffer:
                self.pump()
            if self.held:
                self.read_on()
        else:
            self._close()

    def _rest_follows(self) -> None:
        if self.state < CLOSING:
            self._start_dropping()

    def _body_bytes(self, data: bytes) -> None:
        x = self.exchange
        sink = self._sink
        assert x is not None  # noqa: S101 - state BODY has both
        assert sink is not None  # noqa: S101 - the same
        self._await_more()
        try:
            payload = self._take(data)
        except MalformedError as error:
            self.keep = False
            x.fault(error.fault, error.detail)
            return
        total = sink.length + len(payload)
        if total > self._limits.max_body_bytes:
            x.fault(ProtocolFault.BODY_TOO_LARGE, self._too_large())
        elif total > x.reserved and not self._grow(x, total - x.reserved):
            x.fault(ProtocolFault.BUDGET, NO_ROOM)
        else:
            sink.write(payload)
            if not self._left and self._decoder is None:
                self._sink = None
                self._move(REPLY)
                self.deadline = NEVER
                x.take_body(sink.finish(), total)

    def _grow(self, x: Exchange, missing: int) -> bool:
        return x.reserve(max(missing, _RESERVE_STEP)) or x.reserve(missing)

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
        self.read_on()
        if self.keep:
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

    def _pause(self) -> None:
        """Read nothing more of this client for now."""
        if not self.held:
            self.held = True
            self.watch = True
            self.transport.pause_reading()

    def read_on(self) -> None:
        """Read again what the client sends, unless what it sent ahead still waits for its turn."""
        waits = self._later or (self.state is REPLY and len(self._buffer) > self._limits.max_head_bytes)
        if self.held and not waits:
            self.held = False
            self.watch = self.stalled
            self.transport.resume_reading()
