"""Reading a request path in the two ways a server might: as it was sent, and percent-decoded.

Invariant: nothing here repairs a path. A path that does not decode cleanly has no second reading, which the
table takes as "no route". Sources: RFC 3986 sections 2.1 and 5.2.4.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_SEGMENT = re.compile(rb"[A-Za-z0-9._~:@!$&'()*+,=-]+\Z")


def resolve_dots(path: bytes) -> bytes:
    """`path` without `.` and `..` segments, as a URL library resolves them; empty segments stay."""
    if b"/." not in path:
        return path
    kept: list[bytes] = []
    segments = path.split(b"/")[1:]
    for segment in segments:
        if segment == b"..":
            del kept[-1:]
        elif segment != b".":
            kept.append(segment)
    if segments[-1] in {b".", b".."}:
        kept.append(b"")
    return b"/" + b"/".join(kept)


def decoded(path: bytes) -> bytes | None:
    """`path` percent-decoded once, or None when an escape in it is malformed."""
    if b"%" not in path:
        return path
    if _BAD_ESCAPE.search(path):
        return None
    return unquote_to_bytes(path)


def plain_segment(segment: bytes) -> bool:
    """Whether a decoded segment may stand for `{name}`: no slash, no dots alone, nothing left to decode."""
    return _SEGMENT.match(segment) is not None and segment not in {b".", b".."}
