"""How long Ollama is to keep a model loaded, as a request says it: read, and held within bounds.

Invariant: what is forwarded is at least no time and at most `MAX_KEEP_ALIVE`, or was not said. A negative
time means "for ever" to Ollama; a number that is too large for its clock becomes a negative one there and
unloads at once. The failure this prevents is a model of a borrower's that sits in the owner's memory for the
rest of the day. Rejected: taking the field out, which would give the owner's default to whoever asked for
less than that.

Source: api.Duration of Ollama (a JSON number of seconds, or a string for Go's time.ParseDuration).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from vacancy_edge.refusals import bad_request

if TYPE_CHECKING:
    from vacancy_edge.refusal import Refusal

MAX_KEEP_ALIVE: Final = 1800
"""Seconds; what is longer, or for ever, becomes this."""
AT_ONCE: Final = 1.0
"""Seconds; what is shorter counts as none: Go rounds it down to nothing, or it is over when the reply is."""
_LONGEST: Final = 128
"""Bytes of a value that is worth reading."""

_STR: Final[msgspec.json.Decoder[str]] = msgspec.json.Decoder(str)
_TERM: Final = r"(\d+\.?\d*|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)"
_TERMS: Final = re.compile(_TERM, re.ASCII)
_DURATION: Final = re.compile(rf"[+-]?(?:0|(?:{_TERM})+)", re.ASCII)
_UNITS: Final = {
    "ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0,
}  # fmt: skip


class KeepAlive(NamedTuple):
    """What was said.

    Attributes:
        at_once: the model is to be unloaded at once.
        instead: the JSON value to forward instead; None: what was said is within bounds.
    """

    at_once: bool = False
    instead: bytes | None = None


NOT_SAID: Final = KeepAlive()
_TOO_LONG: Final = KeepAlive(instead=b"%d" % MAX_KEEP_ALIVE)


def read_keep_alive(raw: msgspec.Raw | None) -> KeepAlive | Refusal:
    """Read the value of `keep_alive`; refused is what Ollama would refuse."""
    if raw is None:
        return NOT_SAID
    value = bytes(raw) if len(raw) <= _LONGEST else b""
    if value == b"null":
        return NOT_SAID
    seconds = _seconds(value)
    if seconds is None:
        return bad_request('"keep_alive" must be a number of seconds, or a duration such as "5m".')
    if not 0 <= seconds <= MAX_KEEP_ALIVE:
        return _TOO_LONG
    return KeepAlive(at_once=seconds < AT_ONCE)


def _seconds(value: bytes) -> float | None:
    if value.startswith(b'"'):
        return _duration(_STR.decode(value))
    try:
        return float(value)
    except ValueError:
        return None


def _duration(text: str) -> float | None:
    """`text` as Go's time.ParseDuration reads it."""
    if _DURATION.fullmatch(text) is None:
        return None
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _TERMS.findall(text))
    return -seconds if text.startswith("-") else seconds
