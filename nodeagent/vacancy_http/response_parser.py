"""The head of an upstream's response: raw checks, httptools, framing."""

from __future__ import annotations

from typing import Self

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from vacancy_http.faults import MalformedError
from vacancy_http.head_check import RESPONSE_HEAD, response_framing
from vacancy_http.head_memo import key_of, remember
from vacancy_http.headers import end_to_end, field_lines
from vacancy_http.reply import ResponseHead
from vacancy_http.request_parser import connection_tokens, join_repeated

_OK = 200
_BODILESS = frozenset({204, 304})


class ParsedResponse(ResponseHead):
    """One response head as the engine sees it; also the object httptools calls back.

    Attributes:
        length: bytes of the body if they are known (0 for replies that have none), else None.
        chunked: the body is chunked.
        keep_alive: the upstream takes another request on this connection.
        lines: the fields as they go on, of a head that is remembered.
        source: the remembered head that this one is a copy of.
    """

    __slots__ = ("chunked", "keep_alive", "length", "lines", "source")

    length: int | None
    chunked: bool
    keep_alive: bool
    lines: bytes
    source: ParsedResponse

    def __init__(self) -> None:
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by httptools."""
        self.headers.append((name.lower(), value.strip()))

    @classmethod
    def like(cls, template: ParsedResponse) -> Self:
        """A head of its own that says the same."""
        head = cls.__new__(cls)
        head.source = template
        head.status = template.status
        head.status_line = template.status_line
        head.headers = template.headers[:]
        head.content_length = template.content_length
        head.chunked = template.chunked
        head.keep_alive = template.keep_alive
        return head


def parse_response_head(raw: bytes, method: str, memo: dict[bytes, ParsedResponse]) -> ParsedResponse:
    """Read `raw`, which ends in its empty line, as the answer to `method`.

    Args:
        raw: the head.
        method: of the request.
        memo: heads of this upstream that were read before.

    Raises:
        MalformedError: the upstream's answer is no valid response.
    """
    key, digits = key_of(raw)
    known = None if key is None else memo.get(key)
    if known is None:
        known = _parse(raw)
        remember(memo, key, known)
    head = ParsedResponse.like(known)
    if digits:
        head.content_length = int(digits)
    if head.status in _BODILESS or method == "HEAD" or head.status < _OK:
        head.length = 0
        head.chunked = False
    else:
        head.length = head.content_length
    return head


def _parse(raw: bytes) -> ParsedResponse:
    found = RESPONSE_HEAD.fullmatch(raw)
    if found is None:
        raise MalformedError("the upstream's head is no valid HTTP/1.1 response")
    head = ParsedResponse()
    try:
        HttpResponseParser(head).feed_data(raw)
    except HttpParserUpgrade:
        pass  # 101: the caller judges by the status
    except HttpParserError as error:
        raise MalformedError(f"the upstream's head has no valid reading: {error}") from error
    minor, head.status_line, status = found.groups()
    head.status = int(status)
    fields = dict(head.headers)
    head.content_length, head.chunked = response_framing(minor == b"1", head.headers, fields)
    if len(fields) != len(head.headers):
        join_repeated(head.headers, fields)
    options = connection_tokens(fields[b"connection"]) if b"connection" in fields else []
    head.keep_alive = b"close" not in options and (minor == b"1" or b"keep-alive" in options)
    head.headers = end_to_end(head.headers, options)
    head.lines = field_lines(head.headers)
    return head
