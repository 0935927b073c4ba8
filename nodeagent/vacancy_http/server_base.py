"""What a client's connection is, whatever it carries: its state, its limits, its ends.

Invariant: a client that left, or that takes nothing any more, takes its exchange with it within the same
call. A FIN
while a reply is owed counts as leaving: a client that half-closes and still waits cannot be told from one
that is gone, and work for nobody costs the lender.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from vacancy_http.faults import Ending
from vacancy_http.socket_state import peer_closed, reset_on_close
from vacancy_http.states import CONNECTION_NEXT, Connection, IllegalTransitionError
from vacancy_http.wheel import NEVER

if TYPE_CHECKING:
    from vacancy_http.body import BodySink
    from vacancy_http.exchange import Exchange
    from vacancy_http.server import Listener

IDLE, HEAD, BODY, REPLY, DRAIN, LINGER, TUNNEL, CLOSING, CLOSED = Connection
RESTING = frozenset({IDLE, HEAD, LINGER})  # owe nobody anything
EVICTABLE = RESTING | {DRAIN, CLOSING}
"""Have had their reply, or have not asked for one. Without DRAIN and CLOSING, clients without a token that
send their refused bodies slowly, or never take their refusals, would keep everybody else out."""
_CLOSE_LINE = b"connection: close\r\n"
_KEEP_LINE = b"connection: keep-alive\r\n"


class ClientConnection(asyncio.Protocol):
    """A client's connection without what is read from it.

    Attributes:
        exchange: the one whose reply is owed.
        held: reading is paused, as the client sends ahead.
        keep: another request may follow on this connection.
        minor: of the version 1.x of the request whose reply is owed.
        stalled: the client does not take what is written.
        since: loop time at which it began to wait for a head.
    """

    __slots__ = (
        "_limits",
        "_listener",
        "_sink",
        "_stall_deadline",
        "_stall_size",
        "app",
        "deadline",
        "exchange",
        "held",
        "is_tls",
        "keep",
        "minor",
        "peer",
        "since",
        "stalled",
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
        self.held = False
        self.stalled = False
        self.keep = True
        self.minor = 1
        self._sink: BodySink | None = None
        self._stall_size = 0
        self._stall_deadline = NEVER

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

    def eof_received(self) -> bool:
        """The client sends no more: it is gone when it is owed a reply."""
        if self.exchange is not None:
            self._gone()
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the loop's signature
        """The connection is gone."""
        self._gone()

    def on_deadline(self) -> None:
        """A limit of the state has passed."""
        raise NotImplementedError

    def pause_writing(self) -> None:
        """The client takes less than comes for it."""
        self.stalled = True
        self.watch = True
        self._stall_size = self.transport.get_write_buffer_size()
        self._stall_deadline = self.wheel.horizon + self._limits.write_stall_s
        if self.exchange is not None and self.exchange.link is not None:
            self.exchange.link.pause()

    def resume_writing(self) -> None:
        """The client takes more."""
        self.stalled = False
        self.watch = self.held
        if self.exchange is not None and self.exchange.link is not None:
            self.exchange.link.resume()

    def on_tick(self, now: float) -> None:
        """Look for a client that stopped to take, or that left while it is not read."""
        if self.stalled:
            size = self.transport.get_write_buffer_size()
            if size < self._stall_size:
                self._stall_deadline = now + self._limits.write_stall_s
            self._stall_size = size
            if now >= self._stall_deadline:
                self._gone(Ending.CLIENT_STALLED)
                return
        if self.held and peer_closed(self.transport):
            self._gone()

    # The exchange's and the listener's side.

    def end_after_reply(self) -> None:
        """The reply's end is the connection's end."""
        self.keep = False

    def connection_line(self) -> bytes:
        """The Connection line of the coming reply, if it needs one."""
        if self.keep:
            return b"" if self.minor else _KEEP_LINE
        return _CLOSE_LINE

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
        self.keep = False
        if self.state in RESTING:
            self._close()

    # Inner parts.

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
