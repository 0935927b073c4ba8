"""What an exchange is, whatever becomes of it: the request as the application sees it, and its phase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vacancy_http.body import Body
from vacancy_http.states import PHASE_NEXT, IllegalTransitionError, Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_http.reply import Reply, ResponseHead
    from vacancy_http.request_parser import RequestHead
    from vacancy_http.response_parser import ParsedResponse
    from vacancy_http.server_conn import ServerConnection
    from vacancy_http.upstream import Upstream
    from vacancy_http.upstream_conn import UpstreamConnection

DECIDING, COLLECTING, JUDGING, FORWARDED, STREAMING, ENDED = Phase
_LENGTH = b"content-length"
MOST_JOINED = 64 << 10
"""Bytes of a body that is written together with its head, and read whole again for a second try."""


class ExchangeBase:
    """One request and its reply, without what can be done with them.

    Attributes:
        head: what the request's head says; several exchanges may share one.
        content_length: bytes of the body, where its Content-Length tells them; else 0.
        small: the collected body as one object, where it is one and not given back. It is there from the
            start where all of it came with the head, within the limit, and the budget had room for it.
        alive: the reply is still owed or under way.
        phase: where it stands.
        context: the application's own slot.
        reserved: bytes of the budget that its body holds.
        tap: is called with each piece of the response's body (without chunk framing), when set.
        status: what the client was sent; 0 for nothing yet.
        sent_to_upstream: bytes of the request may have reached the upstream.
        response_bytes: bytes of the response's body that were given to the client's transport.
        request: the head that the upstream gets; where `payload` is not None up to the digits of its length.
        plain: the request goes in one write, and the reply may go the short way of `plain_response`.
        untold: the application need not hear of a plain reply with this Content-Type.
        whole: makes the answer of a reply that is read whole.
    """

    __slots__ = (
        "_body",
        "_chunked",
        "_client",
        "_gathered",
        "_head",
        "_retried",
        "alive",
        "content_length",
        "context",
        "head",
        "link",
        "payload",
        "phase",
        "plain",
        "request",
        "request_sent",
        "reserved",
        "response_bytes",
        "sent_to_upstream",
        "small",
        "status",
        "tap",
        "untold",
        "upstream",
        "whole",
    )

    # Set only where the reply is read whole.
    _gathered: bytearray
    _head: ParsedResponse

    def __init__(
        self, client: ServerConnection, head: RequestHead, content_length: int, small: bytes | None
    ) -> None:
        """`small`: the body, where it came with the head and was reserved."""
        self._client = client
        self.head = head
        self.content_length = content_length
        self.small = small
        self.alive = True
        self.phase = DECIDING
        self.context: Any = None
        self.reserved = 0 if small is None else content_length
        self.tap: Callable[[bytes], None] | None = None
        self.status = 0
        self.sent_to_upstream = False
        self.request_sent = False
        self.response_bytes = 0
        self.plain = False
        self.untold: bytes | None = None
        self.whole: Callable[[ResponseHead, bytes], Reply] | None = None
        self.link: UpstreamConnection | None = None
        self.upstream: Upstream | None = None
        self.request = b""
        self.payload: Body | bytes | None = None
        self._body: Body | None = None
        self._retried = False
        self._chunked = False

    @property
    def method(self) -> str:
        """As the client sent it."""
        return self.head.method

    @property
    def target(self) -> bytes:
        """As the client sent it."""
        return self.head.target

    @property
    def path(self) -> bytes:
        """The target's part before `?`."""
        return self.head.path

    @property
    def query(self) -> bytes | None:
        """The target's part after `?`; None where it has none."""
        return self.head.query

    @property
    def has_body(self) -> bool:
        """A body is announced (it may turn out empty where it is chunked)."""
        return self.content_length > 0 or self.head.chunked

    @property
    def peer(self) -> tuple[Any, ...] | None:
        """The client's address, as its socket gives it."""
        return self._client.peer

    @property
    def is_tls(self) -> bool:
        """The client's connection is encrypted."""
        return self._client.is_tls

    def header(self, name: bytes) -> bytes | None:
        """The value of the field `name` (lower-cased), several joined by ", "; None when it is absent."""
        value = self.head.fields.get(name)
        return self._own_length(value) if name == _LENGTH and value is not None else value

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """All fields, names lower-cased, values stripped; to look at."""
        return [(n, self._own_length(v) if n == _LENGTH else v) for n, v in self.head.headers]

    @property
    def body(self) -> Body | None:
        """The collected body; closed once the response has started."""
        if self._body is None and self.small is not None:
            self._body = Body(self.small)
        return self._body

    def _own_length(self, remembered: bytes) -> bytes:
        """The digits of this request's Content-Length; a head has those of the request it was read from."""
        return remembered if int(remembered) == self.content_length else b"%d" % self.content_length

    def _move(self, phase: Phase) -> None:
        if phase not in PHASE_NEXT[self.phase]:
            raise IllegalTransitionError(f"exchange: {self.phase.name} to {phase.name}")
        self.phase = phase
