"""The short way of an exchange: body and reply each came whole, and nothing about them is special.

Invariant: what happens on this way is what would have happened on the full one (`exchange.py`), in fewer
calls; a test compares them with random messages. Most requests of a borrower go this way, and their cost is
the number of functions that run for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_http.exchange_base import (
    DECIDING,
    ENDED,
    FORWARDED,
    JUDGING,
    MOST_JOINED,
    STREAMING,
    ExchangeBase,
)
from vacancy_http.faults import Ending
from vacancy_http.response_parser import ParsedResponse

if TYPE_CHECKING:
    from vacancy_http.exchange import Exchange
    from vacancy_http.upstream import Upstream


class ShortExchange(ExchangeBase):
    """The steps of the short way; what is not here is at `Exchange`."""

    __slots__ = ()

    def pass_on(self, upstream: Upstream, prefix: bytes, body: bytes, untold: bytes | None) -> None:
        """Send a request with a body on, without working out its head again.

        Nothing happens when the exchange is over.

        Args:
            upstream: where to.
            prefix: what `headers.head_prefix` made of this head, for a method that is not HEAD.
            body: what to send.
            untold: `response_started` is not called for a complete reply of this Content-Type whose head was
                seen before; None: it always is.
        """
        if not self.alive:
            return
        if self.phase is JUDGING or self.phase is DECIDING:
            self.phase = FORWARDED
        else:
            self._move(FORWARDED)
        self.plain = len(body) <= MOST_JOINED
        self.untold = untold
        self.request = prefix
        self.payload = body
        self.upstream = upstream
        x: Exchange = self  # type: ignore[assignment]  # there is no other kind
        idle = upstream.idle
        if not (idle and idle.pop().reuse(x)):
            upstream.dispatch(x, self._client.wheel)

    def pass_chunk(self, chunk: bytes, payload: bytes) -> None:
        """One more chunk of a response, not the last: the short way of `response_data`."""
        self._client.transport.write(chunk if self._chunked else payload)
        self.response_bytes += len(payload)
        if self.tap is not None:
            self.tap(payload)

    def plain_response(self, head: ParsedResponse, data: bytes) -> None:
        """The whole reply at once, its body by length, and no redirect: the short way of `response_head`.

        `head` is the remembered one; the application gets a copy of it that it may edit.
        """
        x: Exchange = self  # type: ignore[assignment]  # there is no other kind
        client = self._client
        start = head.start
        if self.untold is None or head.content_type != self.untold:
            self.phase = STREAMING
            told = ParsedResponse.like(head)
            client.app.response_started(x, told)
            if not self.alive:
                return  # cancelled by the application
            start = told.lines()
        self.status = head.status
        self.response_bytes = size = len(data)
        if client.keep and client.minor:
            rest = b"content-length: %d\r\n\r\n" % size
        else:
            rest = b"content-length: %d\r\n%b\r\n" % (size, client.connection_line())
        client.transport.write(b"".join((start, rest, data)))
        if self.tap is not None and data:
            self.tap(data)
            if not self.alive:
                return
        self.phase = ENDED  # from FORWARDED or STREAMING, as an upstream's connection has it
        self.alive = False
        if self.reserved:
            client.app.budget.used -= self.reserved
            self.reserved = 0
        self.payload = self.small = None
        if self._body is not None:
            self._body.close()
        client.exchange = None
        client.app.exchange_ended(x, Ending.COMPLETE)
        client.reply_finished()
