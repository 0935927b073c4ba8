"""The head of a request: raw checks, then httptools, then the framing rules.

The parser is fed one head and nothing else, and a new one is made for each (2 us with all callbacks):
httptools cannot pause, so a parser that saw the bytes after a head would deliver a pipelined second request
before the first has its reply. Bodies are counted by us (`intake.py`).
"""

from __future__ import annotations

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from vacancy_http.faults import MalformedError, ProtocolFault
from vacancy_http.head_check import REQUEST_HEAD, request_framing, why_malformed

_SLASH = 0x2F


class RequestHead:
    """One request head; also the object httptools calls back.

    Attributes:
        method, target: as sent.
        minor: of the version 1.x.
        headers: names lower-cased, values without surrounding white space, in order.
        fields: by name; several values of one name joined by ", ".
        content_length: bytes of the body, 0 when chunked.
        keep_alive: the client's wish for the connection.
        expects_continue: it waits for a 100 before it sends the body.
    """

    __slots__ = (
        "chunked",
        "content_length",
        "expects_continue",
        "fields",
        "headers",
        "keep_alive",
        "method",
        "minor",
        "target",
    )

    method: str
    target: bytes
    minor: int
    fields: dict[bytes, bytes]
    content_length: int
    chunked: bool
    keep_alive: bool
    expects_continue: bool

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by httptools."""
        self.headers.append((name.lower(), value.strip()))


def parse_request_head(head: RequestHead, raw: bytes, max_headers: int) -> None:
    """Read `raw`, which ends in its empty line, into `head`.

    Raises:
        MalformedError: refuse it and close the connection.
    """
    found = REQUEST_HEAD.fullmatch(raw)
    if found is None:
        raise MalformedError(why_malformed(raw))
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
    head.method = str(method, "ascii")
    head.target = target
    head.minor = 1 if minor == b"1" else 0
    fields = head.fields = dict(headers)
    if target[0] != _SLASH and (target != b"*" or method != b"OPTIONS"):
        raise MalformedError("the target is not a path; this is no forward proxy")
    head.content_length, head.chunked = request_framing(head.minor, headers, fields)
    if len(fields) != len(headers):
        join_repeated(headers, fields)
    if b"connection" in fields:
        tokens = connection_tokens(fields[b"connection"])
        head.keep_alive = b"close" not in tokens and (head.minor == 1 or b"keep-alive" in tokens)
    else:
        head.keep_alive = head.minor == 1
    head.expects_continue = (
        b"expect" in fields and head.minor == 1 and fields[b"expect"].lower() == b"100-continue"
    )


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
