"""Strict decoder of the chunked coding, for both directions.

Invariant: what it decodes, h11 decodes to the same bytes and ends at the same place. httptools is not used
here because
it cannot stop: it reads on into the next message within the same call, and skips what it was lenient about.
Trailers are checked and dropped; they never become headers.

A client's chunks are bounded in number: each costs microseconds however small it is, and a few connections
with one-byte chunks kept the loop busy for seconds. Upstreams may send as they like.
"""

from __future__ import annotations

import re
from enum import IntEnum

from vacancy_http.faults import MalformedError

_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[\t\x20-\x7e\x80-\xff]*)?")
_TRAILER_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*")
_MAX_LINE = 4096
_MOST_DIGITS = 16
_MAX_OVERHEAD = 65536  # bytes of trailers
_FAIR_SIZE = 64  # bytes that a client's chunks have on average, the first few of them aside


class _At(IntEnum):
    SIZE = 0
    DATA = 1
    DATA_END = 2
    TRAILERS = 3


class ChunkedDecoder:
    """Feed it bytes as they come; it gives the payload.

    Attributes:
        between: all that was fed was whole chunks, none of them the last; what is fed next starts one.
        done: the last chunk and the trailers were read.
        rest: the bytes after the message, once `done`.
    """

    __slots__ = ("_allowance", "_at", "_left", "_overhead", "_pending", "between", "done", "rest")

    def __init__(self, small: int | None = None) -> None:
        """`small`: how many chunks may be smaller than 64 bytes; None: any number."""
        self._allowance = None if small is None else small * _FAIR_SIZE
        self._at = _At.SIZE
        self._left = 0
        self._overhead = 0
        self._pending = b""
        self.between = True
        self.done = False
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        """Decode `data`.

        Raises:
            MalformedError: the coding has an error; the connection has no further use.
        """
        if self._pending:
            data = self._pending + data
            self._pending = b""
        out: list[bytes] = []
        pos = 0
        while not self.done:
            before = pos
            if self._at is _At.DATA:
                pos = self._data(data, pos, out)
            elif self._at is _At.SIZE:
                pos = self._size(data, pos)
            elif self._at is _At.DATA_END:
                pos = self._data_end(data, pos)
            else:
                pos = self._trailers(data, pos)
            if pos == before:
                break
        if self.done:
            self.rest = data[pos:]
        else:
            self._pending = data[pos:]
        self.between = not self._pending and self._at is _At.SIZE and not self.done
        return out[0] if len(out) == 1 else b"".join(out)

    def _data(self, data: bytes, pos: int, out: list[bytes]) -> int:
        piece = data[pos : pos + self._left]
        if piece:
            out.append(piece)
            self._left -= len(piece)
            if not self._left:
                self._at = _At.DATA_END
        return pos + len(piece)

    def _size(self, data: bytes, pos: int) -> int:
        line, after = _line(data, pos)
        if line is None:
            return pos
        found = _SIZE_LINE.fullmatch(line)
        if found is None:
            raise MalformedError("a chunk's size line is not a hexadecimal size")
        self._left = int(found[1], 16)
        if self._allowance is not None:
            self._allowance += self._left - _FAIR_SIZE
            if self._allowance < 0:
                raise MalformedError(f"the chunks are too small, send {_FAIR_SIZE} bytes or more in each")
        self._at = _At.DATA if self._left else _At.TRAILERS
        return after

    def _data_end(self, data: bytes, pos: int) -> int:
        end = data[pos : pos + 2]
        if end == b"\r\n":
            self._at = _At.SIZE
            return pos + 2
        if end in (b"", b"\r"):
            return pos
        raise MalformedError("a chunk is longer than its size")

    def _trailers(self, data: bytes, pos: int) -> int:
        line, after = _line(data, pos)
        if line is None:
            return pos
        if line == b"":
            self.done = True
            return after
        self._overhead += len(line)
        if self._overhead > _MAX_OVERHEAD or _TRAILER_LINE.fullmatch(line) is None:
            raise MalformedError("a trailer is malformed or too long")
        return after


def one_chunk(data: bytes) -> bytes | None:
    """The payload of `data`, where that is one whole chunk and nothing else, written as everybody writes it.

    The size line is compared with how the number of bytes that follow is written: no extension, no other
    spelling and no last chunk passes, so whoever reads `data` reads this one chunk.
    """
    end = data.find(b"\r\n", 0, _MOST_DIGITS + 2)
    payload = data[end + 2 : -2]
    if end > 0 and payload and data.endswith(b"\r\n") and data[:end] == b"%x" % len(payload):
        return payload
    return None


def _line(data: bytes, pos: int) -> tuple[bytes | None, int]:
    """The line that starts at `pos` and where the next one starts; None when it is not complete."""
    end = data.find(b"\r\n", pos, pos + _MAX_LINE)
    if end >= 0:
        return data[pos:end], end + 2
    if len(data) - pos >= _MAX_LINE:
        raise MalformedError("a line of the chunked coding is too long")
    if b"\n" in data[pos:] or b"\r" in data[pos:-1]:
        raise MalformedError("a line of the chunked coding ends in a bare line feed or carriage return")
    return None, pos
