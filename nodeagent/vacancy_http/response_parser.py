"""The head of an upstream's response: raw checks, httptools, framing."""

from __future__ import annotations

import httptools

from vacancy_http.faults import Malformed
from vacancy_http.head_check import RESPONSE_HEAD, response_framing
from vacancy_http.request_parser import connection_tokens, join_repeated

_CONTINUE, _OK, _NO_CONTENT, _NOT_MODIFIED = 100, 200, 204, 304


class ParsedResponse:
    """One response head; also the object httptools calls back.

    Attributes:
        status: the three digits.
        status_line: the status line after the version, reason included, as it came.
        headers: names lower-cased, in order; everything, hop-by-hop too.
        options: what its Connection field names.
        length: bytes of the body if they are known (0 for replies that have none), else None.
        announced: the Content-Length field, which for HEAD and 304 is not the length of a body that comes.
        chunked: the body is chunked.
        keep_alive: the upstream takes another request on this connection.
    """

    __slots__ = (
        "announced",
        "chunked",
        "headers",
        "keep_alive",
        "length",
        "options",
        "status",
        "status_line",
    )

    status: int
    status_line: bytes
    options: list[bytes]
    length: int | None
    announced: int | None
    chunked: bool
    keep_alive: bool

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by httptools."""
        self.headers.append((name.lower(), value.strip()))


def parse_response_head(raw: bytes, method: str) -> ParsedResponse:
    """Read `raw`, which ends in its empty line, as the answer to `method`.

    Raises:
        Malformed: the upstream's answer is no valid response.
    """
    found = RESPONSE_HEAD.fullmatch(raw)
    if found is None:
        raise Malformed("the upstream's head is no valid HTTP/1.1 response")
    head = ParsedResponse()
    try:
        httptools.HttpResponseParser(head).feed_data(raw)
    except httptools.HttpParserUpgrade:
        pass  # 101: the caller judges by the status
    except httptools.HttpParserError as error:
        raise Malformed(f"the upstream's head has no valid reading: {error}") from error
    minor_text, head.status_line, status = found.groups()
    head.status = int(status)
    minor = 1 if minor_text == b"1" else 0
    headers = head.headers
    fields = dict(headers)
    head.announced, head.chunked = response_framing(minor, headers, fields)
    if len(fields) != len(headers):
        join_repeated(headers, fields)
    connection = fields.get(b"connection")
    head.options = [] if connection is None else connection_tokens(connection)
    head.keep_alive = b"close" not in head.options and (minor == 1 or b"keep-alive" in head.options)
    if method == "HEAD" or head.status in {_NO_CONTENT, _NOT_MODIFIED} or head.status < _OK:
        head.length = 0
        head.chunked = False
    else:
        head.length = head.announced
    return head
