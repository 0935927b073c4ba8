"""A client's connection: heads in, one exchange at a time.

Invariant: the parser sees one head at a time. What a client sends ahead (pipelining) is held back, up to the
size of a head, and then not read at all, until its turn comes; so replies keep the order of their requests
without a queue. Of one client's requests a few are answered in one turn of the loop, and none while it does
not take the replies before: who sends many and reads nothing would otherwise fill our memory with replies,
and keep everybody else, the owner's return included, waiting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_http.chunked import ChunkedDecoder
from vacancy_http.exchange import Exchange
from vacancy_http.faults import MalformedError, ProtocolFault
from vacancy_http.head_check import check_partial
from vacancy_http.head_memo import whole_body
from vacancy_http.reply import reply_bytes
from vacancy_http.request_parser import read_request_head
from vacancy_http.server_base import BODY, CLOSING, DRAIN, HEAD, IDLE, LINGER, REPLY, TUNNEL
from vacancy_http.tunnel_client import TunnelClient
from vacancy_http.wheel import NEVER

if TYPE_CHECKING:
    from vacancy_http.head_memo import Around
    from vacancy_http.request_parser import RequestHead
    from vacancy_http.server import Listener

_HEAD_END = b"\r\n\r\n"
_SMALL_CHUNKS = 4096  # of one body; a client that has more of them may as well send larger ones
_IN_ONE_TURN = 32  # heads of one client; more wait for the next turn of the loop
_DIGITS = 32  # bytes by which two heads that are remembered as one can differ, and the empty line
_CLOSE_LINE = b"connection: close\r\n"


class ServerConnection(TunnelClient):
    """One connection of a client."""

    __slots__ = ("_around", "_counters", "_heads", "_known", "_pumping", "_served")

    _known: RequestHead  # of the request before

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener)
        self._heads = listener.heads
        self._counters = listener.counters
        self._around: Around | None = None  # of the request before: this client's next is most likely so
        self._served = False
        self._pumping = False

    def data_received(self, data: bytes) -> None:
        """Bytes of a client."""
        state = self.state
        around = self._around
        if around is not None and state is IDLE and not self._buffer and not self.stalled:
            body, budget = whole_body(data, around), self.app.budget
            if (
                body is not None
                and (size := len(body)) <= self._limits.max_body_bytes
                and (used := budget.used + size) <= budget.total
            ):
                budget.used = used
                # As `_begin`; `keep` and `minor` are still those of the request before, which had this head.
                self.deadline = NEVER
                self.state = REPLY
                self.exchange = x = Exchange(self, self._known, size, body)
                self._counters.requests += 1
                self.app.head_received(x)
                return
        if state <= HEAD:
            self._buffer = self._buffer + data if self._buffer else data
            self.pump()
        elif state is REPLY:
            self._hold(data)
        elif state is LINGER:
            self._dropped(len(data))
        elif state is BODY or state is DRAIN:
            decoding = self._decoder is not None
            if state is BODY:
                self._body_bytes(data)
            else:
                self._drain(data)
            if decoding and self.state is state:
                self._pause()  # a full socket would be read on for megabytes, and chunks cost time
                self.wheel.loop.call_soon(self._go_on)
        elif state is TUNNEL:
            self._tunnelled(data)

    def resume_writing(self) -> None:
        """The client takes more; heads that waited for that are taken."""
        super().resume_writing()
        if self._later:
            self._go_on()

    def on_deadline(self) -> None:
        """A limit of the state has passed."""
        state = self.state
        if state is IDLE:
            self._close()
        elif state is HEAD:
            self._refuse(MalformedError("the head did not come in time", ProtocolFault.HEADER_TIMEOUT))
        elif state is BODY and self.exchange is not None:
            self.keep = False
            self.exchange.fault(ProtocolFault.BODY_TIMEOUT, "the body did not come in time")
        else:
            self.abort()

    def pump(self) -> None:
        """Take heads from the buffer while it is their turn; a loop, as replies may be instant."""
        if self._pumping or self._later:
            return
        self._pumping = True
        turns = _IN_ONE_TURN
        try:
            while self._buffer and self.state <= HEAD:
                data = self._buffer
                end = data.find(_HEAD_END)
                if end < 0:
                    self._head_part(data)
                    break
                if self.stalled or not turns:
                    self._wait()
                    break
                turns -= 1
                if end > self._limits.max_head_bytes - 4:
                    raise self._too_long()
                head, digits = read_request_head(self._heads, data[: end + 4], self._limits.max_headers)
                self._buffer = data[end + 4 :]
                short = not head.expects_continue and end + _DIGITS <= self._limits.max_head_bytes
                self._known, self._around = head, head.around if short else None
                self._begin(head, int(digits) if digits else head.content_length)
        except MalformedError as error:
            self._refuse(error)
        finally:
            self._pumping = False

    def _begin(self, head: RequestHead, length: int) -> None:
        self._served = True
        self.minor = head.minor
        self.keep = head.keep_alive
        buffer, body = self._buffer, None
        if head.chunked:
            self._decoder = ChunkedDecoder(_SMALL_CHUNKS)
        elif 0 < length <= self._limits.max_body_bytes and length <= len(buffer):
            budget = self.app.budget
            if budget.used + length <= budget.total:  # else collecting it finds the words
                budget.used += length
                body, self._buffer = buffer[:length], buffer[length:]
        self._left = length if body is None else 0
        self._owes_continue = head.expects_continue and body is None
        self.deadline = NEVER
        self.state = REPLY  # from IDLE or HEAD, where heads are read
        self.exchange = x = Exchange(self, head, length, body)
        self._counters.requests += 1
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
        self._counters.malformed += 1
        self.keep = False
        self.transport.write(
            reply_bytes(
                self.app.fault_reply(error.fault, error.detail), head_only=False, connection=_CLOSE_LINE
            ),
        )
        self._start_dropping()

    def _hold(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > self._limits.max_head_bytes:
            self._pause()

    def _wait(self) -> None:
        """Leave the heads in the buffer for the next turn, or until the client takes what is written."""
        self._later = True
        self._pause()
        if not self.stalled:
            self.wheel.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """The next turn of the loop has come, or the client has taken its replies."""
        if self.state >= CLOSING or (self.stalled and self._later):
            return
        self._later = False
        if self.state <= HEAD:
            self.pump()
        self.read_on()
