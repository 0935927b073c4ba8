"""The id that a server gave to a stored response, read from how its reply begins.

Invariant: only the id of the response itself counts, in the place where it cannot be something that was put
into the request and echoed: the first key of a JSON reply, or the response of the first event of a stream. A
miss costs the borrower a later read; a false hit would hand out somebody else's answer. Rejected: to look for
anything that reads like an id, which `metadata` of the request can supply.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

MOST: Final = 256 << 10
"""Bytes of a stream in which its first event is over: it repeats the request's instructions."""
_FIRST: Final = 512
"""Bytes of a JSON reply in which its first key is over."""
_ID: Final = re.compile(rb'\s*\{\s*"id"\s*:\s*"([A-Za-z0-9_.-]{1,128})"')
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class _Response(msgspec.Struct):
    id: str = ""


class _Created(msgspec.Struct):
    type: str
    response: _Response


_CREATED: Final[msgspec.json.Decoder[_Created]] = msgspec.json.Decoder(_Created)


class ResponseIdWatch:
    """Reads one reply as it passes; ask `over` after each piece."""

    __slots__ = ("_start", "_stream", "id", "over")

    def __init__(self, *, stream: bool) -> None:
        """`stream`: the reply is a stream of events."""
        self._stream = stream
        self._start = bytearray()
        self.id: str | None = None
        """The id, once it was seen."""
        self.over = False
        """Nothing more will be found."""

    def feed(self, piece: bytes) -> None:
        """Take the next bytes, split anywhere."""
        if self.over:
            return
        self._start += piece
        self.over = self._event() if self._stream else self._object()
        if self.over:
            self._start.clear()

    def _object(self) -> bool:
        found = _ID.match(self._start)
        if found is not None:
            self.id = found[1].decode("ascii")
        return found is not None or len(self._start) >= _FIRST

    def _event(self) -> bool:
        """Look at the first line of data, once it is whole."""
        at = 0
        while (end := self._start.find(b"\n", at)) >= 0:
            line = bytes(self._start[at:end])
            if line.startswith(b"data:"):
                self.id = _created(line.removeprefix(b"data:"))
                return True
            at = end + 1
        return len(self._start) > MOST


def _created(data: bytes) -> str | None:
    try:
        event = _CREATED.decode(data.strip())
    except (msgspec.MsgspecError, RecursionError):
        return None
    named = event.type == "response.created" and _PLAIN.fullmatch(event.response.id)
    return event.response.id if named else None
