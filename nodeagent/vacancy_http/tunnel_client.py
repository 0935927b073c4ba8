"""The client's end of a tunnel.

Invariant: what a client sends before it has its 101 waits, in order and bounded like a pipelined request, and
is the first thing that goes through. A connection that was a tunnel is never read for requests again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from vacancy_http.server_base import TUNNEL
from vacancy_http.server_body import BodyReader

if TYPE_CHECKING:
    from vacancy_http.tunnel_link import TunnelLink


class TunnelClient(BodyReader):
    """The part of a client's connection that may become a tunnel."""

    __slots__ = ()

    @property
    def tunnels_full(self) -> bool:
        """The listener has as many tunnels as it may."""
        return self._listener.counters.tunnels >= self._limits.max_tunnels

    def count_tunnel(self, change: int) -> None:
        """A tunnel was begun (1), or is over (-1)."""
        self._listener.counters.tunnels += change

    @property
    def tunnel_idle_s(self) -> float:
        """Seconds in which something has to go through a tunnel."""
        return self._limits.tunnel_idle_s

    @property
    def write_stall_s(self) -> float:
        """Seconds in which who is written to has to take something."""
        return self._limits.write_stall_s

    def switch(self, head: bytes) -> None:
        """Send `head`, and what the client sent ahead to the other end."""
        self._move(TUNNEL)
        self.transport.write(head)
        early, self._buffer = self._buffer, b""
        self.read_on()
        if early:
            self._tunnelled(early)

    def hold_back(self) -> None:
        """The other end takes less than comes: read no more until `read_on`."""
        self._pause()

    def end_tunnel(self) -> None:
        """The tunnel is over; what was written still leaves."""
        self._close()

    def eof_received(self) -> bool:
        """The client sends no more: a tunnel ends with it, but what it sent before still arrives."""
        if self.state is TUNNEL and self.exchange is not None:
            self.exchange.client_finished()
        return super().eof_received()

    def _tunnelled(self, data: bytes) -> None:
        """Bytes for the other end."""
        if self.exchange is not None and self.exchange.link is not None:
            cast("TunnelLink", self.exchange.link).take(data)
