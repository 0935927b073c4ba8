"""Which fields go on, and how heads are written.

Dropped in both directions: hop-by-hop fields, those named in Connection, Proxy-* (RFC 9110 7.6.1). Towards an
upstream also Host, Expect and Content-Length, which the engine writes itself: a forwarded Expect would make
the upstream wait for a body that is already here, and a forwarded Content-Length could disagree with the body
that was judged.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from vacancy_http.request_parser import connection_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vacancy_http.reply import ResponseHead

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
_SENT_WITHOUT_BODY = frozenset({"POST", "PUT", "PATCH"})


@lru_cache(maxsize=64)
def _without(drop: frozenset[bytes]) -> frozenset[bytes]:
    return _NOT_TO_UPSTREAM | drop


def request_head(
    method: str,
    target: bytes,
    host_line: bytes,
    headers: Iterable[Field],
    *,
    connection: bytes | None,
    drop: frozenset[bytes],
    add: Sequence[Field],
    length: int | None,
) -> bytes:
    """The head that an upstream gets.

    Args:
        method: as the client sent it.
        target: as the application decided.
        host_line: everything from the version to the end of the Host line.
        headers: the client's.
        connection: the client's Connection field.
        drop: names, lower-cased, that the application takes out.
        add: fields that the application puts in.
        length: bytes of the body; None for no body.
    """
    gone = _without(drop)
    if connection is not None and connection not in {b"keep-alive", b"close"}:
        gone = gone.union(connection_tokens(connection))
    lines = [b"%b: %b\r\n" % f for f in headers if f[0] not in gone and f[0][:6] != b"proxy-"]
    if add:
        lines += [b"%b: %b\r\n" % f for f in add]
    if length is not None:
        lines.append(b"content-length: %d\r\n\r\n" % length)
    elif method in _SENT_WITHOUT_BODY:
        lines.append(b"content-length: 0\r\n\r\n")
    else:
        lines.append(b"\r\n")
    return b"%b %b%b%b" % (method.encode("ascii"), target, host_line, b"".join(lines))


def end_to_end(headers: list[Field], options: list[bytes] | None) -> list[Field]:
    """The fields of a response that the client may see; `options` are those its Connection field names."""
    gone = _NOT_TO_CLIENT if options is None else _NOT_TO_CLIENT.union(options)
    return [f for f in headers if f[0] not in gone and f[0][:6] != b"proxy-"]


def response_head(head: ResponseHead, framing: bytes) -> bytes:
    """The head that a client gets; `framing` are the complete lines the engine adds."""
    lines = b"".join([b"%b: %b\r\n" % f for f in head.headers])
    return b"HTTP/1.1 %b\r\n%b%b\r\n" % (head.status_line, lines, framing)
