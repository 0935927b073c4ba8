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


class ExchangeBase:
    """One request and its reply, without what can be done with them.

    Attributes:
        method, target: as the client sent them; `path` and `query` are the target's parts before and after
            `?`.
        has_body: a body is announced (it may turn out empty where it is chunked).
        small: the collected body as one object, where it is one and not given back.
        alive: the reply is still owed or under way.
        phase: where it stands.
        context: the application's own slot.
        reserved: bytes of the budget that its body holds.
        tap: is called with each piece of the response's body (without chunk framing), when set.
        status: what the client was sent; 0 for nothing yet.
        sent_to_upstream: bytes of the request may have reached the upstream.
        response_bytes: bytes of the response's body that were given to the client's transport.
    """

    __slots__ = (
        "_body",
        "_chunked",
        "_client",
        "_digits",
        "_gathered",
        "_head",
        "_request_sent",
        "_retried",
        "alive",
        "content_length",
        "context",
        "has_body",
        "head",
        "link",
        "method",
        "path",
        "payload",
        "phase",
        "query",
        "request",
        "reserved",
        "response_bytes",
        "sent_to_upstream",
        "small",
        "status",
        "tap",
        "target",
        "upstream",
        "whole",
    )

    # Set by `forward`; the private ones only where the reply is read whole.
    whole: Callable[[ResponseHead, bytes], Reply] | None
    _gathered: bytearray
    _head: ParsedResponse

    def __init__(self, client: ServerConnection, head: RequestHead, digits: bytes) -> None:
        """`digits` are those of this request's Content-Length, where they are not in `head`."""
        self.head = head
        self.method = head.method
        self.target = head.target
        self.path = head.path
        self.query = head.query
        self._digits = digits
        self.content_length = int(digits) if digits else head.content_length
        self._client = client
        self.has_body = self.content_length > 0 or head.chunked
        self.small: bytes | None = None
        self._body: Body | None = None
        self.alive = True
        self.phase = DECIDING
        self.context: Any = None
        self.tap: Callable[[bytes], None] | None = None
        self.status = 0
        self.sent_to_upstream = False
        self.response_bytes = 0
        self.link: UpstreamConnection | None = None
        self.upstream: Upstream | None = None
        self.request = b""
        self.payload: Body | bytes | None = None
        self.reserved = 0
        self._request_sent = False
        self._retried = False
        self._chunked = False

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
        if name == b"content-length" and self._digits:
            return self._digits
        return self.head.fields.get(name)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """All fields, names lower-cased, values stripped; to look at."""
        headers = self.head.headers
        if not self._digits:
            return headers
        return [(n, self._digits if n == b"content-length" else v) for n, v in headers]

    @property
    def body(self) -> Body | None:
        """The collected body; closed once the response has started."""
        if self._body is None and self.small is not None:
            self._body = Body(self.small)
        return self._body

    def _move(self, phase: Phase) -> None:
        if phase not in PHASE_NEXT[self.phase]:
            raise IllegalTransitionError(f"exchange: {self.phase.name} to {phase.name}")
        self.phase = phase
