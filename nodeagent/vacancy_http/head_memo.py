"""Heads that were read before.

A client that keeps its connection sends the same head again and again, but for the digits of Content-Length;
so does an upstream, within the same second. Reading a head costs 3 us; finding it here a quarter of that, and
recognizing a message like the one before it (`whole_body`) a tenth.

Invariant: two heads with one key have one reading, but for the length of their body. The key is the whole
head without the digits of its first `Content-Length: 123` line; a head with such a line whose value is no
number, written as everybody writes it, has no key. Only heads that were read and found valid are stored, so
no key stands for an ambiguous one: a second Content-Length, in whatever spelling, stays in the key, and a
head with two was never valid.
"""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")

_USUAL = b"\r\nContent-Length: "
_LOWER = b"\r\ncontent-length: "
_MAX_DIGITS = 18
_ZERO = 0x30
_MAX_HEADS = 256
_MAX_BYTES = 2048


def key_of(raw: bytes) -> tuple[bytes | None, bytes]:
    """The key of the head `raw`, and the digits that are not part of it (none: they are part of it)."""
    at = raw.find(_USUAL)
    if at < 0:
        at = raw.find(_LOWER)
        if at < 0:
            return raw, b""
    at += len(_USUAL)
    end = raw.find(b"\r", at)
    digits = raw[at:end]
    if not digits.isdigit() or len(digits) > _MAX_DIGITS or (digits[0] == _ZERO and digits != b"0"):
        return None, b""
    return raw[:at] + raw[end:], digits


class Around:
    """The bytes of a remembered head before and after the digits of its Content-Length.

    Attributes:
        before, after: these bytes.
        start: where the digits begin.
        size: length of `after`.
        reach: up to where `after` can end.
    """

    __slots__ = ("after", "before", "reach", "size", "start")

    def __init__(self, before: bytes, after: bytes) -> None:
        self.before = before
        self.after = after
        self.start = len(before)
        self.size = len(after)
        self.reach = self.start + _MAX_DIGITS + self.size


def around_digits(key: bytes | None, digits: bytes, raw: bytes) -> Around | None:
    """What stands around the `digits` of the head `raw`; None where it has no such line, or is too long."""
    if key is None or not digits or len(key) > _MAX_BYTES:
        return None
    at = raw.find(_USUAL)
    at = (raw.find(_LOWER) if at < 0 else at) + len(_USUAL)
    return Around(raw[:at], raw[at + len(digits) :])


def whole_body(data: bytes, around: Around) -> bytes | None:
    """The body in `data`, where `data` is one message, whole and nothing else, with this remembered head.

    None: it is something else, or more, or less. The digits are compared with how the number of bytes that
    follow is written, so no other spelling of it, and no other number, passes.
    """
    start = around.start
    end = data.find(around.after, start, around.reach)
    if end < 0 or not data.startswith(around.before):
        return None
    body = data[end + around.size :]
    return body if data[start:end] == b"%d" % len(body) else None


def remember(memo: dict[bytes, T], key: bytes | None, head: T) -> None:
    """Store `head`, in bounds: 256 of at most 2 KiB. A full memo starts anew: simpler than an order."""
    if key is not None and len(key) <= _MAX_BYTES:
        if len(memo) >= _MAX_HEADS:
            memo.clear()
        memo[key] = head
