"""The upstream's end of a tunnel: a connection of its own, never pooled, unread once it is agreed to.

Invariant: each end is read only as fast as the other takes, and neither outlives the other. A silent tunnel
ends at its deadline, which every byte of either side moves; one whose upstream takes nothing ends at the
write stall. The failure this prevents: a tunnel holds a client's connection, an upstream's connection and,
where it is work, a slot of the ledger, and nothing but its two ends says that it is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_http.faults import Ending, MalformedError
from vacancy_http.tunnel_handshake import answer_fault
from vacancy_http.upstream_conn import CLOSED, FLUSHING, TUNNEL, UpstreamConnection
from vacancy_http.wheel import NEVER

if TYPE_CHECKING:
    from vacancy_http.exchange import Exchange
    from vacancy_http.response_parser import ParsedResponse
    from vacancy_http.tunnel_client import TunnelClient
    from vacancy_http.upstream import Upstream


class TunnelLink(UpstreamConnection):
    """A connection to an upstream that was asked to switch to a WebSocket."""

    __slots__ = ("_client", "_key", "_stall_deadline", "_stall_size")

    def __init__(self, upstream: Upstream, x: Exchange, client: TunnelClient, key: bytes) -> None:
        super().__init__(upstream, client.wheel, x)
        self._client = client
        self._key = key
        self._stall_size = 0
        self._stall_deadline = NEVER
        client.count_tunnel(1)

    # The exchange's side.

    def take(self, data: bytes) -> None:
        """Bytes of the client."""
        self.deadline = self._wheel.horizon + self._client.tunnel_idle_s
        self.transport.write(data)
        if self._write_paused:
            self._client.hold_back()

    def finish(self) -> None:
        """The client is done: let what it sent leave, for a while, and close."""
        self.exchange = None
        self._move(FLUSHING)
        self.watch = False
        self.deadline = self._wheel.horizon + self._client.write_stall_s
        self.transport.close()

    def abort(self) -> None:
        """Close at once."""
        was_open = self.state is not CLOSED
        super().abort()
        if was_open:
            self._client.count_tunnel(-1)

    # The wheel's side.

    def on_deadline(self) -> None:
        """Nothing came in time."""
        x = self.exchange
        if self.state is TUNNEL and x is not None:
            self.abort()
            x.tunnel_over(Ending.TUNNEL_IDLE)
        else:
            super().on_deadline()

    def on_tick(self, now: float) -> None:
        """Look whether the upstream still takes something."""
        size = self.transport.get_write_buffer_size()
        if size < self._stall_size:
            self._stall_deadline = now + self._client.write_stall_s
        self._stall_size = size
        if now >= self._stall_deadline:
            self._fail(Ending.UPSTREAM_TIMEOUT, "the upstream took nothing of what was sent to it")

    # The transport's side.

    def data_received(self, data: bytes) -> None:
        """Bytes of the upstream."""
        if self.state is TUNNEL and self.exchange is not None:
            self.deadline = self._wheel.horizon + self._client.tunnel_idle_s
            self.exchange.tunnel_data(data)
        else:
            super().data_received(data)

    def pause_writing(self) -> None:
        """The upstream takes less than comes for it."""
        super().pause_writing()
        if self.state is TUNNEL:
            self.watch = True
            self._stall_size = self.transport.get_write_buffer_size()
            self._stall_deadline = self._wheel.horizon + self._client.write_stall_s
            self._client.hold_back()

    def resume_writing(self) -> None:
        """The upstream takes more."""
        super().resume_writing()
        if self.state is TUNNEL:
            self.watch = False
            self._client.read_on()

    # Inner parts.

    def send(self, x: Exchange) -> None:
        """Send the handshake; an upstream that says nothing to it is not waited for without end."""
        super().send(x)
        if self.deadline == NEVER:
            self.deadline = self._wheel.horizon + self._client.tunnel_idle_s

    def _finish(self, x: Exchange, *, dirty: bool) -> None:
        """Whatever was answered instead of a 101 is complete."""
        del dirty
        super()._finish(x, dirty=True)

    def _switched(self, x: Exchange, head: ParsedResponse, raw: bytes, data: bytes) -> None:
        why = answer_fault(raw, self._key)
        if why is not None:
            raise MalformedError(f"the upstream's 101 is no valid answer: {why}")
        self._move(TUNNEL)
        self.deadline = self._wheel.horizon + self._client.tunnel_idle_s
        x.tunnel_open(head, data)

    def _lost(self, exc: Exception | None) -> None:
        x = self.exchange
        if self.state is TUNNEL and x is not None and exc is None:
            self.abort()
            x.tunnel_over(Ending.TUNNEL_ENDED)
        else:
            super()._lost(exc)
