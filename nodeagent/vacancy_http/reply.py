"""A complete answer of our own, and the head of an upstream's answer."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

_NO_BODY_BELOW, _NO_CONTENT, _NOT_MODIFIED = 200, 204, 304
_REASONS = {int(status): status.phrase.encode("ascii") for status in HTTPStatus}


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer. The engine adds Content-Length and, where the connection ends, Connection."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class ResponseHead:
    """The head of an upstream's response, before the client gets it.

    Attributes:
        status: three digits; to look at (the client gets `status_line`).
        status_line: the status line after the version.
        content_type: the value of that field as the upstream sent it; the first, should there be several.
        content_length: bytes the upstream announced, None if it did not. To look at: framing is the engine's.
        common: the fields, shared with all heads that say the same, and therefore never changed.
        own: a copy of them, once somebody has looked at `headers`: it may have been edited.
    """

    __slots__ = ("common", "content_length", "content_type", "own", "status", "status_line")

    status: int
    status_line: bytes
    content_type: bytes | None
    content_length: int | None
    common: list[tuple[bytes, bytes]]
    own: list[tuple[bytes, bytes]] | None

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Names lower-cased; hop-by-hop fields and Content-Length are not in it. May be edited."""
        if self.own is None:
            self.own = self.common[:]
        return self.own

    @headers.setter
    def headers(self, fields: list[tuple[bytes, bytes]]) -> None:
        self.own = fields


def reply_bytes(reply: Reply, *, head_only: bool, connection: bytes) -> bytes:
    """The bytes of `reply`.

    Args:
        reply: what to say.
        head_only: it answers HEAD: the length is told, the body is not sent.
        connection: the complete Connection line, or nothing.
    """
    fields = b"".join([b"%b: %b\r\n" % field for field in reply.headers])
    no_body = reply.status in {_NO_CONTENT, _NOT_MODIFIED} or reply.status < _NO_BODY_BELOW
    length = b"" if no_body else b"content-length: %d\r\n" % len(reply.body)
    body = b"" if head_only or no_body else reply.body
    reason = _REASONS.get(reply.status, b"")
    return b"HTTP/1.1 %d %b\r\n%b%b%b\r\n%b" % (reply.status, reason, fields, length, connection, body)
