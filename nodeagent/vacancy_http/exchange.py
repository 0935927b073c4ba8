"""One request and its one reply, as the application sees it.

Invariants: `exchange_ended` is called exactly once; when it is called, the upstream's connection is in the
pool or closed, and the budget of the body is returned. Every path to the end goes through `_end`, but for
`plain_response` (`exchange_short.py`), which does the same in place. A reply is written by exactly one of
four: `_answer` (our own), `response_head` with what follows it or `plain_response` (the upstream's), or
nothing (the client is gone).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_http.body import Body
from vacancy_http.exchange_base import (
    COLLECTING,
    ENDED,
    FORWARDED,
    JUDGING,
    MOST_JOINED,
    STREAMING,
)
from vacancy_http.exchange_short import ShortExchange
from vacancy_http.faults import FAULT_OF_ENDING, Ending, ProtocolFault
from vacancy_http.headers import head_prefix, request_head
from vacancy_http.response_parser import WITH_LOCATION
from vacancy_http.states import IllegalTransitionError
from vacancy_http.tunnel import Tunnelled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vacancy_http.reply import Reply, ResponseHead
    from vacancy_http.response_parser import ParsedResponse
    from vacancy_http.upstream import Upstream
_LAST_CHUNK = b"0\r\n\r\n"
_NO_CONTENT = 204
MAX_WHOLE = 1 << 20
"""Bytes of a reply that is read whole before it is answered."""


class Exchange(ShortExchange, Tunnelled):
    """One request and its reply; its attributes are explained at `ExchangeBase`."""

    __slots__ = ()

    # What the application calls.

    def collect_body(self) -> None:
        """Have the body collected; `body_received` follows, maybe within this call.

        A body that is too large, that the budget has no room for, or that comes too slowly is answered by the
        engine (`fault_reply`); the exchange then ends as `Ending.ANSWERED`.
        """
        if self.small is not None:
            self._move(JUDGING)
            self._client.app.body_received(self)
        elif self.has_body:
            self._client.collect(self)
        else:
            self.take_body(Body(b""), reserved=0)

    def respond(self, reply: Reply) -> None:
        """Answer with `reply`. Nothing happens when the exchange is over (the client left meanwhile).

        Raises:
            IllegalTransitionError: the request was forwarded; use `cancel`.
        """
        if not self.alive:
            return
        if self.phase >= FORWARDED:
            raise IllegalTransitionError(
                "respond() after forward(); cancel() is what ends a forwarded exchange"
            )
        self._answer(reply, Ending.ANSWERED)

    def forward(
        self,
        upstream: Upstream,
        *,
        target: bytes,
        drop: frozenset[bytes],
        add: Sequence[tuple[bytes, bytes]],
        body: Body | bytes | None,
        whole: Callable[[ResponseHead, bytes], Reply] | None = None,
    ) -> None:
        """Send the request on. Nothing happens when the exchange is over (the client left meanwhile).

        Args:
            upstream: where to.
            target: of the request line.
            drop: further names, lower-cased, of the client's fields that do not go on.
            add: fields that go on besides.
            body: what to send; None for no body.
            whole: gets the upstream's reply, read whole (`MAX_WHOLE` bytes at most), and makes the answer of
                it; without it the reply streams as it comes.
        """
        if not self.alive:
            return
        if self.phase is JUDGING:
            self.phase = FORWARDED
        else:
            self._move(FORWARDED)
        self.whole = whole
        payload = body.small if isinstance(body, Body) and body.small is not None else body
        small = payload is None or len(payload) <= MOST_JOINED
        self.plain = small and whole is None and self.method != "HEAD"
        head_of = head_prefix if payload is not None else request_head
        self.request = head_of(self.head, target, upstream.host_line, drop=drop, add=add)
        self.payload = payload
        self.upstream = upstream
        upstream.dispatch(self, self._client.wheel)

    def cancel(self, reply: Reply) -> None:
        """End the exchange from outside: the upstream's connection is aborted within this call.

        Before the response's head `reply` is sent and the connection may go on; later the client's connection
        is aborted, so that a cut stream never looks like a finished one. Nothing happens when the exchange is
        over.
        """
        if not self.alive:
            return
        self._drop_link()
        if self.phase is STREAMING:
            self._client.abort()
            self._end(Ending.CANCELLED)
        else:
            self._answer(reply, Ending.CANCELLED)

    # What the client's connection calls.

    def reserve(self, n: int) -> bool:
        """Take `n` more bytes of the budget for this exchange's body."""
        if not self._client.app.budget.reserve(n):
            return False
        self.reserved += n
        return True

    def collecting(self) -> None:
        """The body is not here at once."""
        self._move(COLLECTING)

    def take_body(self, body: Body, reserved: int) -> None:
        """The body is complete; of the budget `reserved` bytes are kept."""
        if self.reserved > reserved:
            self._client.app.budget.release(self.reserved - reserved)
            self.reserved = reserved
        self._move(JUDGING)
        self._body = body
        self.small = body.small
        self._client.app.body_received(self)

    def fault(self, fault: ProtocolFault, detail: str) -> None:
        """Answer an error that the engine found."""
        self._answer(self._client.app.fault_reply(fault, detail), Ending.ANSWERED)

    def client_lost(self, ending: Ending) -> None:
        """The client left, or takes nothing any more."""
        self._drop_link()
        self._end(ending)

    # What the upstream's connection calls.

    def sent_whole(self) -> None:
        """The transport has the whole request."""
        self.request_sent = True
        if self.phase is STREAMING:
            self._drop_body()

    def retry(self) -> bool:
        """The reused connection died before a byte of the response; whether a new one is tried (once)."""
        if self._retried or self.upstream is None:
            return False
        self._retried = True
        self.upstream.open(self, self._client.wheel)
        return True

    def response_head(self, head: ParsedResponse, data: bytes, *, complete: bool) -> None:
        """The upstream's head came, and `data` of its body with it."""
        if self.whole is not None:
            self._head = head
            self._gathered = bytearray()
            self._gather(data, complete=complete)
            return
        self._move(STREAMING)
        client = self._client
        if head.status in WITH_LOCATION:
            self._redirect(head)
        client.app.response_started(self, head)
        if not self.alive:
            return  # cancelled by the application
        self.status = head.status
        if self.request_sent:
            self._drop_body()
        out = b"%b%b\r\n" % (head.lines(), self._framing(head))
        if self._chunked:
            out += self._framed(data, complete=complete)
        elif data:
            out += data
        client.transport.write(out)
        if client.stalled and self.link is not None:
            self.link.pause()  # it has not even taken the reply before this one
        self._written(data, complete=complete)

    def response_data(self, data: bytes, *, complete: bool) -> None:
        """More of the response's body."""
        if self.whole is not None:
            self._gather(data, complete=complete)
            return
        out = self._framed(data, complete=complete)
        if out:
            self._client.transport.write(out)
        self._written(data, complete=complete)

    def upstream_failed(self, ending: Ending, detail: str) -> None:
        """There will be no (complete) response. The connection is closed already."""
        self.link = None
        if ending is Ending.UPSTREAM_UNREACHABLE and self.sent_to_upstream:
            ending = Ending.UPSTREAM_DIED  # the first try may have started work
        if self.phase is STREAMING:
            self._client.abort()
            self._end(ending)
        else:
            self._answer(self._client.app.fault_reply(FAULT_OF_ENDING[ending], detail), ending)

    # Inner parts.

    def _redirect(self, head: ParsedResponse) -> None:
        upstream = self.upstream
        assert upstream is not None  # noqa: S101 - a response has an upstream
        head.headers = [(n, upstream.rewrite(v) if n == b"location" else v) for n, v in head.headers]

    def _framing(self, head: ParsedResponse) -> bytes:
        """The framing lines towards the client; decides with them whether its connection goes on."""
        client = self._client
        lines = b""
        if head.length is not None:
            if head.content_length is not None and head.status != _NO_CONTENT:
                lines = b"content-length: %d\r\n" % head.content_length
        elif self.head.minor:
            self._chunked = True
            lines = b"transfer-encoding: chunked\r\n"
        else:
            client.end_after_reply()
        return lines + client.connection_line()

    def _framed(self, data: bytes, *, complete: bool) -> bytes:
        if not self._chunked:
            return data
        out = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
        return out + _LAST_CHUNK if complete else out

    def _written(self, data: bytes, *, complete: bool) -> None:
        self.response_bytes += len(data)
        if data and self.tap is not None:
            self.tap(data)
        if complete and self.alive:
            self._end(Ending.COMPLETE)
            self._client.reply_finished()

    def _gather(self, data: bytes, *, complete: bool) -> None:
        """A piece of a reply that is read whole; while it comes, nothing was sent to the client."""
        gathered, head, answer_of = self._gathered, self._head, self.whole
        assert answer_of is not None  # noqa: S101 - else it is not gathered
        gathered += data
        if len(gathered) > MAX_WHOLE:
            self._drop_link()
            self.upstream_failed(Ending.UPSTREAM_INVALID, f"its reply is over {MAX_WHOLE} bytes")
        elif complete:
            if head.status in WITH_LOCATION:
                self._redirect(head)
            self._answer(answer_of(head, bytes(gathered)), Ending.COMPLETE)

    def _answer(self, reply: Reply, ending: Ending) -> None:
        self.status = reply.status
        self._client.send_reply(reply, head_only=self.method == "HEAD")
        self._end(ending)
        self._client.reply_finished()

    def _drop_link(self) -> None:
        link, self.link = self.link, None
        if link is not None:
            link.abort()

    def _drop_body(self) -> None:
        self.payload = self.small = None
        if self.reserved:
            self._client.app.budget.release(self.reserved)
            self.reserved = 0
        if self._body is not None:
            self._body.close()

    def _end(self, ending: Ending) -> None:
        self._move(ENDED)
        self.alive = False
        if self.reserved or self.payload is not None:
            self._drop_body()
        self._client.exchange = None
        self._client.app.exchange_ended(self, ending)
