"""The head of a request: raw checks, then httptools, then the framing rules.

The parser is fed one head and nothing else, and a new one is made for each: httptools cannot pause, so a
parser that saw the bytes after a head would deliver a pipelined second request before the first has its
reply. Bodies are counted by us (`server_body.py`).
"""

from __future__ import annotations

from typing import Any

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from vacancy_http.faults import MalformedError, ProtocolFault
from vacancy_http.head_check import REQUEST_HEAD, request_framing, why_malformed
from vacancy_http.head_memo import Around, around_digits, key_of, remember

_SLASH = 0x2F


class RequestHead:
    """What a request's head says, without the length of its body; also the object httptools calls back.

    Several exchanges may share one, so nothing in it is changed after `parse_request_head`.

    Attributes:
        method, target: as sent; `path` and `query` are the target's parts before and after `?`.
        minor: of the version 1.x.
        headers: names lower-cased, values without surrounding white space, in order.
        fields: by name; several values of one name joined by ", ".
        content_length: bytes of the body of the request that was parsed, 0 when chunked.
        keep_alive: the client's wish for the connection.
        expects_continue: it waits for a 100 before it sends the body.
        lines: the fields as they go on, by what the application drops (`headers.py`).
        note: the application's own slot, kept as long as the head is remembered.
        around: its bytes around the digits of its Content-Length, where it has any and is remembered.
    """

    __slots__ = (
        "around",
        "chunked",
        "content_length",
        "expects_continue",
        "fields",
        "headers",
        "keep_alive",
        "lines",
        "method",
        "minor",
        "note",
        "path",
        "query",
        "target",
    )

    method: str
    target: bytes
    path: bytes
    query: bytes | None
    minor: int
    fields: dict[bytes, bytes]
    content_length: int
    chunked: bool
    keep_alive: bool
    expects_continue: bool

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.lines: dict[frozenset[bytes], bytes] = {}
        self.note: Any = None
        self.around: Around | None = None

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by httptools."""
        self.headers.append((name.lower(), value.strip()))


def read_request_head(
    memo: dict[bytes, RequestHead], raw: bytes, max_headers: int
) -> tuple[RequestHead, bytes]:
    """The head `raw` and the digits of its Content-Length where they are not the head's own.

    Raises:
        MalformedError: refuse it and close the connection.
    """
    key, digits = key_of(raw)
    if key is not None:
        known = memo.get(key)
        if known is not None:
            return known, digits
    head = parse_request_head(raw, max_headers)
    head.around = around_digits(key, digits, raw)
    remember(memo, key, head)
    return head, digits


def parse_request_head(raw: bytes, max_headers: int) -> RequestHead:
    """Read `raw`, which ends in its empty line.

    Raises:
        MalformedError: refuse it and close the connection.
    """
    found = REQUEST_HEAD.fullmatch(raw)
    if found is None:
        raise MalformedError(why_malformed(raw))
    head = RequestHead()
    try:
        HttpRequestParser(head).feed_data(raw)
    except HttpParserUpgrade:
        pass  # the head was read; an Upgrade is the application's to see and ours to drop
    except HttpParserError as error:
        raise MalformedError(f"the head has no valid reading: {error}") from error
    method, target, minor = found.groups()
    headers = head.headers
    if len(headers) > max_headers:
        raise MalformedError(f"more than {max_headers} fields", ProtocolFault.HEAD_TOO_LARGE)
    if target[0] != _SLASH and (target != b"*" or method != b"OPTIONS"):
        raise MalformedError("the target is not a path; this is no forward proxy")
    head.method = str(method, "ascii")
    head.target = target
    path, mark, query = target.partition(b"?")
    head.path = path
    head.query = query if mark else None
    head.minor = 1 if minor == b"1" else 0
    fields = head.fields = dict(headers)
    head.content_length, head.chunked = request_framing(head.minor, headers, fields)
    if len(fields) != len(headers):
        join_repeated(headers, fields)
    options = connection_tokens(fields[b"connection"]) if b"connection" in fields else ()
    if any(option.startswith(b"content-") for option in options):
        # It would go on without that field, and be read in another way than it was here (RFC 9110, 7.6.1).
        raise MalformedError("the Connection field names a field of the content")
    head.keep_alive = b"close" not in options and (head.minor == 1 or b"keep-alive" in options)
    head.expects_continue = head.minor == 1 and fields.get(b"expect", b"").lower() == b"100-continue"
    return head


def join_repeated(headers: list[tuple[bytes, bytes]], fields: dict[bytes, bytes]) -> None:
    """Make `fields` hold all values of repeated names, joined as RFC 9110 5.3 joins lists."""
    values: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        values.setdefault(name, []).append(value)
    for name, several in values.items():
        if len(several) > 1:
            fields[name] = b", ".join(several)


def connection_tokens(value: bytes) -> list[bytes]:
    """The options a Connection field names, lower-cased."""
    if b"," not in value:
        return [value.lower()]
    return [token.strip().lower() for token in value.split(b",")]
