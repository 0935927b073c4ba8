"""Which fields go on, and how heads are written.

Dropped in both directions: hop-by-hop fields, those named in Connection, Proxy-* (RFC 9110 7.6.1). Towards an
upstream also Host, Expect and Content-Length, which the engine writes itself: a forwarded Expect would make
the upstream wait for a body that is already here, and a forwarded Content-Length could disagree with the body
that was judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_http.request_parser import connection_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vacancy_http.request_parser import RequestHead

Field = tuple[bytes, bytes]

HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    },
)
_NOT_TO_UPSTREAM = HOP_BY_HOP | {b"host", b"expect", b"content-length"}
_NOT_TO_CLIENT = HOP_BY_HOP | {b"content-length"}
_MAX_KINDS = 8  # sets of dropped names that are kept for one head
_SENT_WITHOUT_BODY = frozenset({"POST", "PUT", "PATCH"})


def request_head(
    head: RequestHead,
    target: bytes,
    host_line: bytes,
    *,
    drop: frozenset[bytes],
    add: Sequence[Field],
) -> bytes:
    """The head that an upstream gets of a request without a body.

    Args:
        head: the client's.
        target: as the application decided.
        host_line: everything from the version to the end of the Host line.
        drop: names, lower-cased, that the application takes out.
        add: fields that the application puts in.
    """
    lines = _all_lines(head, drop, add)
    ending = b"content-length: 0\r\n\r\n" if head.method in _SENT_WITHOUT_BODY else b"\r\n"
    return b"%b %b%b%b%b" % (head.method.encode(), target, host_line, lines, ending)


def head_prefix(
    head: RequestHead, target: bytes, host_line: bytes, *, drop: frozenset[bytes], add: Sequence[Field]
) -> bytes:
    """The head of a request with a body, up to the digits of its length; arguments as above."""
    lines = _all_lines(head, drop, add)
    return b"%b %b%b%bcontent-length: " % (head.method.encode(), target, host_line, lines)


def _all_lines(head: RequestHead, drop: frozenset[bytes], add: Sequence[Field]) -> bytes:
    lines = head.lines.get(drop)
    if lines is None:
        lines = _lines_to_upstream(head, drop)
    return lines + field_lines(add) if add else lines


def _lines_to_upstream(head: RequestHead, drop: frozenset[bytes]) -> bytes:
    gone = _NOT_TO_UPSTREAM | drop
    if b"connection" in head.fields:
        gone = gone.union(connection_tokens(head.fields[b"connection"]))
    lines = field_lines([f for f in head.headers if f[0] not in gone and not f[0].startswith(b"proxy-")])
    if len(head.lines) >= _MAX_KINDS:
        head.lines.clear()
    head.lines[drop] = lines
    return lines


def end_to_end(headers: list[Field], options: list[bytes]) -> list[Field]:
    """The fields of a response that the client may see; `options` are those its Connection field names."""
    gone = _NOT_TO_CLIENT.union(options)
    return [f for f in headers if f[0] not in gone and f[0][:6] != b"proxy-"]


def field_lines(fields: Iterable[Field]) -> bytes:
    """The lines of `fields`."""
    return b"".join([b"%b: %b\r\n" % f for f in fields])
