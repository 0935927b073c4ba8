"""The head of an upstream's response: raw checks, httptools, framing."""

from __future__ import annotations

from typing import Self

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from vacancy_http.faults import MalformedError
from vacancy_http.head_check import RESPONSE_HEAD, response_framing
from vacancy_http.head_memo import Around, around_digits, key_of, remember
from vacancy_http.headers import end_to_end, field_lines
from vacancy_http.reply import ResponseHead
from vacancy_http.request_parser import connection_tokens, join_repeated

_OK = 200
_BODILESS = frozenset({204, 304})
WITH_LOCATION = frozenset({201, *range(300, 400)})


class ParsedResponse(ResponseHead):
    """One response head as the engine sees it; also the object httptools calls back.

    Attributes:
        length: bytes of the body if they are known (0 for replies that have none), else None.
        chunked: the body is chunked.
        keep_alive: the upstream takes another request on this connection.
        start: the head as it goes on, without framing; of a head that is remembered.
        around: the head's bytes around the digits of its Content-Length, where it is remembered and a reply
            with it is plain: not bodiless, no redirect, and the connection stays.
        source: the remembered head that this one is a copy of.
    """

    __slots__ = ("around", "chunked", "keep_alive", "length", "source", "start")

    length: int | None
    chunked: bool
    keep_alive: bool
    around: Around | None
    start: bytes
    source: ParsedResponse

    def __init__(self) -> None:
        self.common = []
        self.own = None
        self.around = None

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by httptools."""
        self.common.append((name.lower(), value.strip()))

    def lines(self) -> bytes:
        """The head as it goes on, without framing."""
        if self.own is None or self.own == self.common:
            return self.source.start
        return b"HTTP/1.1 %b\r\n%b" % (self.status_line, field_lines(self.own))

    def is_plain(self) -> bool:
        """Any body follows by its length, and neither status nor connection ask for more."""
        special = self.status < _OK or self.status in _BODILESS or self.status in WITH_LOCATION
        return self.keep_alive and not special

    @classmethod
    def like(cls, template: ParsedResponse) -> Self:
        """A head of its own that says the same."""
        head = cls.__new__(cls)
        head.source = template
        head.status = template.status
        head.status_line = template.status_line
        head.common = template.common
        head.own = None
        head.content_type = template.content_type
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
        if known.is_plain():
            known.around = around_digits(key, digits, raw)
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
    headers = head.common
    fields = dict(headers)
    head.content_length, head.chunked = response_framing(minor == b"1", headers, fields)
    if len(fields) != len(headers):
        join_repeated(headers, fields)
    options = connection_tokens(fields[b"connection"]) if b"connection" in fields else []
    head.keep_alive = b"close" not in options and (minor == b"1" or b"keep-alive" in options)
    head.common = headers = end_to_end(headers, options)
    head.content_type = next((value for name, value in headers if name == b"content-type"), None)
    head.start = b"HTTP/1.1 %b\r\n%b" % (head.status_line, field_lines(headers))
    return head
