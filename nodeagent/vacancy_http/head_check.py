"""Checks of a head's raw bytes, before any parser sees them.

Invariant: a head that passes has exactly one reading. It prevents request smuggling: two parties on one
connection that disagree on where a message ends. httptools alone lets through `gzip, chunked`, chunked on
HTTP/1.0, missing or doubled Host, HTTP/0.9 and 2.0, `#` in the target, obs-fold, bare line feeds and NUL. One
compiled expression over the whole head (about 1 us for 300 bytes) does the grammar; rejected: a list of
single checks, which is slower and leaves gaps.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from vacancy_http.faults import MalformedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_FIELDS = rb"(?:" + _TOKEN + rb":[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n"
REQUEST_HEAD = re.compile(rb"(" + _TOKEN + rb") ([!\"$-~]+) HTTP/1\.([01])\r\n" + _FIELDS)
RESPONSE_HEAD = re.compile(rb"HTTP/1\.([01]) (([1-9][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?)\r\n" + _FIELDS)

_REQUEST_LINE = re.compile(_TOKEN + rb" [!\"$-~]+ HTTP/1\.[01]")
_STARTS_TOKEN = re.compile(_TOKEN)
_HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+)(?::[0-9]{0,5})?")
_MAX_LENGTH_DIGITS = 18  # fits 64 bits with sign, whoever reads it


def why_malformed(head: bytes) -> str:
    """What is wrong with a request head that `REQUEST_HEAD` does not match; for people, off the hot path."""
    if b"\x00" in head:
        return "the head contains NUL"
    if head.count(b"\n") != head.count(b"\r\n") or head.count(b"\r") != head.count(b"\r\n"):
        return "a line of the head ends in a bare line feed or carriage return"
    if b"\r\n " in head or b"\r\n\t" in head:
        return "a field is folded over several lines"
    if _REQUEST_LINE.fullmatch(head[: head.index(b"\r\n")]) is None:
        return "the request line is not `METHOD target HTTP/1.1`"
    return "a field line is not `name: value`"


def check_partial(data: bytes) -> None:
    """Refuse early what can never become a head, so that the sender is told at once and not at the timeout.

    Raises:
        MalformedError: `data` (a head without its end) is not the start of one.
    """
    if data.count(b"\n") != data.count(b"\r\n") or b"\x00" in data or _STARTS_TOKEN.match(data) is None:
        raise MalformedError("this is not the start of an HTTP/1.1 request")


def request_framing(
    minor: int,
    headers: Sequence[tuple[bytes, bytes]],
    fields: Mapping[bytes, bytes],
) -> tuple[int, bool]:
    """Check Host and the framing of a request.

    Args:
        minor: of the protocol version 1.x.
        headers: all fields, names lower-cased.
        fields: the same by name, one value for each.

    Returns:
        The length of the body, and whether it is chunked (the length is then 0).

    Raises:
        MalformedError: the framing is ambiguous, or Host is missing, doubled or no host.
    """
    if len(fields) != len(headers):
        _refuse_doubled(headers, (b"host", b"content-length", b"transfer-encoding"))
    host = fields.get(b"host")
    if host is None:
        if minor:
            raise MalformedError("the Host field is missing")
    elif not _is_host(host):
        raise MalformedError("the Host field is not a host with an optional port")
    length = fields.get(b"content-length")
    if b"transfer-encoding" not in fields:
        return (0 if length is None else content_length(length)), False
    coding = fields[b"transfer-encoding"]
    if length is not None:
        raise MalformedError("Transfer-Encoding and Content-Length together are ambiguous")
    if coding.lower() != b"chunked":
        raise MalformedError("the only Transfer-Encoding is `chunked`")
    if not minor:
        raise MalformedError("HTTP/1.0 has no Transfer-Encoding")
    return 0, True


def response_framing(
    minor: int,
    headers: Sequence[tuple[bytes, bytes]],
    fields: Mapping[bytes, bytes],
) -> tuple[int | None, bool]:
    """The framing of a response that may have a body: its length if given, and whether it is chunked.

    Raises:
        MalformedError: the framing is ambiguous. RFC 9112 6.3 lets Transfer-Encoding win over Content-Length;
            a proxy that
            shares its upstream between borrowers treats it as the attempt to split responses that it may be.
    """
    if len(fields) != len(headers):
        _refuse_doubled(headers, (b"content-length", b"transfer-encoding"))
    coding = fields.get(b"transfer-encoding")
    length = fields.get(b"content-length")
    if coding is None:
        return (None if length is None else content_length(length)), False
    if length is not None or coding.lower() != b"chunked" or not minor:
        raise MalformedError("the response's framing is ambiguous")
    return None, True


@lru_cache(maxsize=256)
def _is_host(value: bytes) -> bool:
    return _HOST.fullmatch(value) is not None


def content_length(value: bytes) -> int:
    """Read a Content-Length: digits only, no sign, list or inner space.

    Raises:
        MalformedError: it is something else.
    """
    if not value.isdigit() or len(value) > _MAX_LENGTH_DIGITS:
        raise MalformedError("Content-Length is not a plain number")
    return int(value)


def _refuse_doubled(headers: Sequence[tuple[bytes, bytes]], names: tuple[bytes, ...]) -> None:
    present = [name for name, _ in headers]
    for name in names:
        if present.count(name) > 1:
            raise MalformedError(f"the field {name.decode()} occurs more than once")
