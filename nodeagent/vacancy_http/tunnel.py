"""An exchange that becomes a tunnel: WebSockets, by RFC 6455.

The application decides about the handshake like about any request and calls `tunnel`. The upstream gets it on
a connection of its own. What it answers but a 101 is relayed like any reply; with a 101 that agrees, both
connections are one pipe: bytes go through unread and unchanged, `pause_writing` of one side stops the reading
of the other, and the end of one is the end of both. The exchange lives as long as the tunnel, so everything
that ends an exchange (a client that left, `cancel`, a listener that closes) ends the tunnel, and
`exchange_ended` tells of it once.

A half-closed tunnel is a closed one: WebSockets say goodbye in frames, and a side that sends no more has
either done so or is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from vacancy_http.exchange_base import FORWARDED, STREAMING, ExchangeBase
from vacancy_http.faults import Ending, ProtocolFault
from vacancy_http.headers import request_head
from vacancy_http.states import PHASE_NEXT, IllegalTransitionError
from vacancy_http.tunnel_handshake import SWITCH, handshake_fault
from vacancy_http.tunnel_link import TunnelLink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vacancy_http.exchange import Exchange
    from vacancy_http.response_parser import ParsedResponse
    from vacancy_http.upstream import Upstream

_SWITCH_LINES = b"".join(b"%b: %b\r\n" % field for field in SWITCH)


class Tunnelled(ExchangeBase):
    """The part of an exchange that may become a tunnel."""

    __slots__ = ()

    # What the application calls.

    @property
    def tunnels_full(self) -> bool:
        """The listener has as many tunnels as it may; `tunnel` would be answered with `TUNNEL_CAP`."""
        return self._client.tunnels_full

    def tunnel(
        self,
        upstream: Upstream,
        *,
        target: bytes,
        drop: frozenset[bytes],
        add: Sequence[tuple[bytes, bytes]],
    ) -> None:
        """Send the handshake on, and be a tunnel once the upstream agrees; arguments as for `forward`.

        A request that is no valid handshake, or one too many, is answered by the engine (`fault_reply`).
        Nothing happens when the exchange is over (the client left meanwhile).
        """
        if not self.alive:
            return
        if FORWARDED not in PHASE_NEXT[self.phase]:
            raise IllegalTransitionError(f"tunnel() in phase {self.phase.name}")
        client = self._client
        client.end_after_reply()  # whatever it sends next was meant for a tunnel
        why = handshake_fault(self.head, has_body=self.has_body)
        if why is not None:
            self.fault(ProtocolFault.BAD_REQUEST, why)
            return
        if client.tunnels_full:
            self.fault(ProtocolFault.TUNNEL_CAP, "as many tunnels are open as there may be")
            return
        self._move(FORWARDED)
        self.whole = None
        self.request = request_head(self.head, target, upstream.host_line, drop=drop, add=(*add, *SWITCH))
        self.upstream = upstream
        link = TunnelLink(upstream, cast("Exchange", self), client, self.head.fields[b"sec-websocket-key"])
        self.link = link
        upstream.connect(link)

    # What the connections call.

    def tunnel_open(self, head: ParsedResponse, data: bytes) -> None:
        """The upstream agreed; `data` came behind its head."""
        self._move(STREAMING)
        client = self._client
        client.app.response_started(cast("Exchange", self), head)
        if not self.alive:
            return  # cancelled by the application
        self.status = head.status
        client.switch(b"%b%b\r\n" % (head.lines(), _SWITCH_LINES))
        if data and self.alive:
            self.tunnel_data(data)
        if client.stalled and self.link is not None:
            self.link.pause()

    def tunnel_data(self, data: bytes) -> None:
        """Bytes of the upstream."""
        self.response_bytes += len(data)
        self._client.transport.write(data)

    def tunnel_over(self, ending: Ending) -> None:
        """The upstream's end is closed, in order: close the client's, once it has what was written."""
        self.link = None
        self._end(ending)
        self._client.end_tunnel()

    def client_finished(self) -> None:
        """The client will send no more; it is lost within this call."""
        link, self.link = self.link, None
        if link is not None:
            cast("TunnelLink", link).finish()

    # What the other part of an exchange does.

    def fault(self, fault: ProtocolFault, detail: str) -> None:
        """Answer an error that the engine found."""
        raise NotImplementedError

    def _end(self, ending: Ending) -> None:
        raise NotImplementedError
