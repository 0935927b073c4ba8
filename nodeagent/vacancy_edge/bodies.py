"""What judging a body answers, and the edits that make the forwarded body out of the one that came.

Invariant: the body forwarded is the body judged. Where a field has to go or must be within bounds, its bytes
are cut out or replaced and the rest stays as it came; re-encoding was rejected because numbers, key order and
escapes of the sender would change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from vacancy_dialects import PromptAsk, RouteClass, RunnerAsk
from vacancy_edge import refusals

if TYPE_CHECKING:
    from vacancy_edge.jsonbody import Top
    from vacancy_edge.refusal import Refusal

MAX_MODEL_NAME: Final = 1024
_OUTPUT_KEYS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict")
JUDGED_KEYS: Final = frozenset({"model", "stream", "background", "n", *_OUTPUT_KEYS})
"""The keys that decide something on JSON routes of every dialect."""

_STR: Final[msgspec.json.Decoder[str]] = msgspec.json.Decoder(str)
decode_text: Final = _STR.decode
_INT: Final[msgspec.json.Decoder[int]] = msgspec.json.Decoder(int)


class Judged(msgspec.Struct, frozen=True):
    """What a body asks for. `forward` is None where the bytes are forwarded as they came.

    `model` None: the body names none, which stands for the server's own. `max_tokens` and `n` are for
    accounting: None where the body does not say, or says it in a way that no server would take. `cls` is
    what the body turned out to ask for: an unload that is written as work is management. `runner` is there
    for Ollama's work, `prompt` for ComfyUI's.
    """

    model: str | None = None
    stream: bool = False
    forward: bytes | None = None
    max_tokens: int | None = None
    n: int | None = None
    cls: RouteClass = RouteClass.WORK
    runner: RunnerAsk | None = None
    prompt: PromptAsk | None = None


NOTHING: Final = Judged()


class Edit(NamedTuple):
    """The bytes from `start` up to `end` are replaced by `new`."""

    start: int
    end: int
    new: bytes = b""

    @property
    def growth(self) -> int:
        """Bytes by which the body gets longer; negative where it gets shorter."""
        return len(self.new) - (self.end - self.start)


Found = tuple[Judged, list[Edit]]
"""What was judged, and the edits, in order and without overlap."""


def edited(body: bytes | memoryview, edits: list[Edit]) -> bytes:
    """`body` with the edits made."""
    parts: list[bytes | memoryview] = []
    at = 0
    for start, end, new in edits:
        parts += (body[at:start], new)
        at = end
    parts.append(body[at:])
    return b"".join(parts)


def text_of(top: Top, key: str) -> str | None | Refusal:
    """The name under `key`; None where it is missing or null."""
    raw = top.get(key)
    if raw is None:
        return None
    try:
        text = _STR.decode(raw)
    except msgspec.MsgspecError:
        if bytes(raw) == b"null":
            return None
        return refusals.bad_request(f'"{key}" must be a string.')
    return text if len(text) <= MAX_MODEL_NAME else refusals.bad_request(f'"{key}" is too long.')


def background(top: Top) -> Refusal | None:
    """Whether the body asks for work that outlives its reply, or might."""
    raw = bytes(top.get("background", b"null"))
    if raw in {b"null", b"false"}:
        return None
    if raw == b"true":
        return refusals.background_refused()
    return refusals.bad_request('"background" must be false or left out.')


def output(top: Top) -> int | None:
    """The most tokens that are asked for."""
    for key in _OUTPUT_KEYS:
        if key in top:
            return count(top[key])
    return None


def count(raw: msgspec.Raw | None) -> int | None:
    """A number of things; None where it is none."""
    if raw is None:
        return None
    try:
        value = _INT.decode(raw)
    except msgspec.MsgspecError:
        return None
    return value if value >= 0 else None
