"""Did an event stream say that it is finished?

A clean end of the framing is not success: servers send their headers before the first token and some end the
chunked body in the ordinary way when the generation broke. So the stream is watched for the event that its
API ends with.

Invariant: `seen` is true only when a whole line is that event. A miss is safe (the work counts as
running until another proof), a false hit is not, therefore text that a model wrote never counts: the cheap
search over a chunk only decides whether the lines are worth parsing. Searching the bytes alone was rejected
for that reason; parsing every event was rejected for its cost at hundreds of chunks a second on hundreds of
streams.

Lines end with LF or CRLF, as every server here sends them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from vacancy_dialects.routes import EndMark, Route

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_LINE: Final = 4 << 20
"""Bytes kept of one line that is split over chunks; a longer line is passed over: its end stays unseen."""

_DATA: Final = b"data:"
_OBJECT: Final = b"{"
_STREAMS: Final = (b"text/event-stream", b"application/x-ndjson")


class _Choice(msgspec.Struct):
    finish_reason: str | None = None


class _Chat(msgspec.Struct):
    choices: list[_Choice] = []


class _Typed(msgspec.Struct):
    type: str = ""


class _Native(msgspec.Struct):
    stop: bool = False


class _Done(msgspec.Struct):
    done: bool = False


_CHAT: Final[msgspec.json.Decoder[_Chat]] = msgspec.json.Decoder(_Chat)
_TYPED: Final[msgspec.json.Decoder[_Typed]] = msgspec.json.Decoder(_Typed)
_NATIVE: Final[msgspec.json.Decoder[_Native]] = msgspec.json.Decoder(_Native)
_DONE: Final[msgspec.json.Decoder[_Done]] = msgspec.json.Decoder(_Done)

_TYPES: Final[Mapping[EndMark, frozenset[str]]] = {
    EndMark.MESSAGES: frozenset({"message_stop"}),
    EndMark.RESPONSES: frozenset({"response.completed", "response.failed", "response.incomplete"}),
    EndMark.SPEECH: frozenset({"speech.audio.done"}),
    EndMark.IMAGE: frozenset({"image_generation.completed", "image_edit.completed"}),
    EndMark.TRANSCRIPT: frozenset({"transcript.text.done"}),
}


def _maybe_chat(chunk: bytes) -> bool:
    """`finish_reason` is in every event, as null; only a chunk that has another one is worth a look.

    Here and below: `find`, since `in` first tries its operand as a number, which costs more than the search.
    """
    if chunk.find(b"[DONE]") >= 0:
        return True
    at = chunk.find(b'finish_reason"')
    while at >= 0:
        if not chunk.startswith(b'finish_reason":null', at):
            return True
        at = chunk.find(b'finish_reason"', at + 19)
    return False


def _maybe_native(chunk: bytes) -> bool:
    at = chunk.find(b'"stop"')
    while at >= 0:
        if not chunk.startswith(b'"stop":false', at):
            return True
        at = chunk.find(b'"stop"', at + 12)
    return False


def _maybe_done(chunk: bytes) -> bool:
    """`done` is in every line, as false; Go writes no space after the colon."""
    at = chunk.find(b'"done"')
    while at >= 0:
        if not chunk.startswith(b'"done":false', at):
            return True
        at = chunk.find(b'"done"', at + 12)
    return False


def _maybe_transcript(chunk: bytes) -> bool:
    return chunk.find(b"transcript.text.done") >= 0 or _maybe_chat(chunk)


def _maybe_messages(chunk: bytes) -> bool:
    return chunk.find(b"message_stop") >= 0


def _maybe_responses(chunk: bytes) -> bool:
    return (
        chunk.find(b"response.completed") >= 0
        or chunk.find(b"response.failed") >= 0
        or chunk.find(b"response.incomplete") >= 0
    )


def _maybe_speech(chunk: bytes) -> bool:
    return chunk.find(b"speech.audio.done") >= 0


def _maybe_image(chunk: bytes) -> bool:
    return chunk.find(b".completed") >= 0


def _never(_chunk: bytes) -> bool:
    return False


_FILTERS: Final[Mapping[EndMark, Callable[[bytes], bool]]] = {
    EndMark.UNKNOWN: _never,
    EndMark.CHAT: _maybe_chat,
    EndMark.MESSAGES: _maybe_messages,
    EndMark.RESPONSES: _maybe_responses,
    EndMark.NATIVE: _maybe_native,
    EndMark.DONE: _maybe_done,
    EndMark.TRANSCRIPT: _maybe_transcript,
    EndMark.SPEECH: _maybe_speech,
    EndMark.IMAGE: _maybe_image,
}


def is_end(mark: EndMark, payload: bytes) -> bool:
    """Whether one event's data (what follows `data:`, or a whole line) is the end that `mark` names."""
    payload = payload.strip()
    try:
        if mark is EndMark.NATIVE:
            return _NATIVE.decode(payload).stop
        if mark is EndMark.DONE:
            return _DONE.decode(payload).done
        if mark is EndMark.CHAT:
            return payload == b"[DONE]" or _has_finish(payload)
        if mark is EndMark.TRANSCRIPT and (payload == b"[DONE]" or _has_finish(payload)):
            return True
        return _TYPED.decode(payload).type in _TYPES.get(mark, frozenset())
    except (msgspec.MsgspecError, RecursionError):
        return False


def _has_finish(payload: bytes) -> bool:
    return any(choice.finish_reason is not None for choice in _CHAT.decode(payload).choices)


def needs_marker(route: Route, content_type: bytes | None) -> bool:
    """Whether a reply of this content type on `route` must show its end, else it is not proved ended.

    That is every stream of events, also on a route of which no end is known: it stays unproved. Other
    replies are proved by their framing alone.
    """
    del route  # every dialect so far streams events in one of two content types, whatever the route
    if content_type is None:
        return False
    return content_type.split(b";", 1)[0].strip().lower() in _STREAMS


class EndWatch:
    """Watches the bytes of one event stream for its end. Ask `seen` when the stream is over."""

    __slots__ = ("_held", "_held_size", "_mark", "_maybe", "_seen", "_starts")

    def __init__(self, route: Route) -> None:
        self._mark = route.end
        self._starts = _OBJECT if route.end is EndMark.DONE else _DATA
        self._maybe = _FILTERS[route.end]
        self._held: list[bytes] = []
        self._held_size = 0
        self._seen = False

    @property
    def seen(self) -> bool:
        """Whether the end was there; a last line without its line feed counts."""
        if not self._seen and self._held:
            self._look(b"".join(self._held))
        return self._seen

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream, split anywhere."""
        if not self._held and chunk.endswith(b"\n"):
            if self._maybe(chunk):
                self._look(chunk)
            return
        self._feed_split(chunk)

    def _feed_split(self, chunk: bytes) -> None:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            whole = b"".join((*self._held, chunk[:cut]))
            self._held.clear()
            self._held_size = 0
            if self._maybe(whole):
                self._look(whole)
        rest = chunk[cut:]
        if rest:
            self._hold(rest)

    def _hold(self, rest: bytes) -> None:
        self._held_size += len(rest)
        if self._held_size > MAX_LINE:
            # What is left of this line must not look like a line of its own.
            self._held[:] = [b":"]
        elif not self._seen:
            self._held.append(rest)

    def _look(self, lines: bytes) -> None:
        for line in lines.split(b"\n"):
            if line.startswith(self._starts) and is_end(self._mark, line.removeprefix(_DATA)):
                self._seen = True
                return
