"""The queue of a ComfyUI server, read as it comes.

Invariant: a queue is known only when its answer was read to the end; a list that breaks off is an error,
never a shorter list, since a prompt that is missing from it would be taken for ended. The queue holds
everybody's graphs with whatever images are in them, so only the ids are kept; decoding it whole was rejected:
16 MiB of graphs for a few ids, in one piece that stands in the way of every stream.

Shape (0.3.64, 0.28.1): {"queue_running": [[number, id, graph, ...], ...], "queue_pending": [...]}.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from vacancy_agent.core.parse.comfyui import MAX_ID, ComfyAnswerError

_STRING = re.compile(rb'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_INSIDE = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_SHALLOW = re.compile(rb'[^"\[\]{},:]*+')
_DEEP = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_QUOTE = b'"'
_ITEM_DEPTH = 3
"""The object, a list in it, an entry of that list."""


@dataclass(frozen=True, slots=True)
class Queued:
    """An entry of the queue."""

    prompt_id: str
    running: bool


class QueueScan:
    """Reads GET /queue as it comes: `feed` the pieces, then `finish`."""

    def __init__(self) -> None:
        self._rest = b""
        self._depth = 0
        self._running: bool | None = None
        """Which list it is in; None: neither."""
        self._seen: set[bytes] = set()
        self._index = 0
        """In an entry: which of its elements."""
        self._value = False
        """In the object: after a colon."""
        self._named = True
        self._text: bytearray | None = None
        """In a string that was not complete yet: what there is of it, where it is kept."""
        self._in_string = False
        self._found: list[Queued] = []

    def feed(self, data: bytes) -> list[Queued]:
        """Take the next piece; the entries whose id came with it.

        Raises:
            ComfyAnswerError: it is no queue.
        """
        data = self._rest + data
        at = 0
        while at < len(data):
            step = self._string_on(data, at) if self._in_string else self._token(data, at)
            if step == at:
                break
            at = step
        self._rest = data[at:]
        found, self._found = self._found, []
        return found

    def finish(self) -> None:
        """The answer is over.

        Raises:
            ComfyAnswerError: it broke off, or is no queue.
        """
        if self._depth or self._in_string or self._seen != {b"queue_running", b"queue_pending"}:
            raise ComfyAnswerError("/queue is no queue, or broke off")

    def _token(self, data: bytes, at: int) -> int:
        """Go on to the next string or mark and past it."""
        skip = _DEEP if self._depth > _ITEM_DEPTH else _SHALLOW
        found = skip.match(data, at)
        at = found.end() if found else at
        if at == len(data):
            return at
        mark = data[at : at + 1]
        if mark == _QUOTE:
            return self._string(data, at)
        if mark in b"[{":
            self._open(mark)
        elif mark in b"]}":
            self._close()
        else:
            self._separator(mark)
        return at + 1

    def _string(self, data: bytes, at: int) -> int:
        found = _STRING.match(data, at)
        if found is not None:
            if self._wanted():
                self._take(found[1])
            return found.end()
        self._in_string = True
        self._text = bytearray() if self._wanted() else None
        return at + 1

    def _string_on(self, data: bytes, at: int) -> int:
        """More of a string that began in an earlier piece."""
        found = _INSIDE.match(data, at)
        end = found.end() if found else at
        if self._text is not None:
            self._text += data[at:end]
            _bounded(self._text)
        if data[end : end + 1] != _QUOTE:
            return end  # all of it, or up to a backslash whose other half is still to come
        self._in_string = False
        if self._text is not None:
            self._take(bytes(self._text))
        return end + 1

    def _wanted(self) -> bool:
        key = self._depth == 1 and not self._value
        return key or (self._depth == _ITEM_DEPTH and self._running is not None and self._index == 1)

    def _take(self, raw: bytes) -> None:
        _bounded(raw)
        if self._depth == 1:
            self._running = {b"queue_running": True, b"queue_pending": False}.get(raw)
            if self._running is not None:
                self._seen.add(raw)
            return
        try:
            prompt_id: str = json.loads(_QUOTE + raw + _QUOTE)
        except ValueError as error:
            raise ComfyAnswerError("/queue has an id that cannot be read") from error
        self._named = True
        self._found.append(Queued(prompt_id, bool(self._running)))

    def _open(self, mark: bytes) -> None:
        wanted = b"{" if self._depth == 0 else b"["
        if mark != wanted and self._depth < _ITEM_DEPTH and (self._depth == 0 or self._running is not None):
            raise ComfyAnswerError("/queue is no queue")
        self._depth += 1
        if self._depth == _ITEM_DEPTH:
            self._index, self._named = 0, self._running is None

    def _close(self) -> None:
        if self._depth == _ITEM_DEPTH and not self._named:
            raise ComfyAnswerError("/queue has an entry without an id")
        self._depth -= 1
        if self._depth < 0:
            raise ComfyAnswerError("/queue is no queue")

    def _separator(self, mark: bytes) -> None:
        if self._depth == 1:
            self._value = mark == b":"
        elif self._depth == _ITEM_DEPTH and mark == b",":
            self._index += 1


def _bounded(raw: bytes | bytearray) -> None:
    if len(raw) > MAX_ID:
        raise ComfyAnswerError("/queue has an id that is too long")
