"""A deliberately dumb model of how Ollama reads a body: Go's encoding/json into a struct, and what follows.

Keys are matched in any case and the last one wins; a map keeps its keys as written and the last of equal
ones; null leaves a field as it was; what follows the first value is not looked at. Source: encoding/json of
Go 1.24, api/types.go and server/routes.go of Ollama 0.17.4.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

FOREVER = math.inf
DEFAULTS = "registry.ollama.ai", "library", "latest"
RUNNER = ("num_ctx", "num_batch", "num_gpu", "main_gpu", "use_mmap", "num_thread")
UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}


class GoRefusesError(Exception):
    """The server would answer 400."""


@dataclass
class Read:
    """The fields that decide something; `keep_alive` in nanoseconds, None: not set."""

    model: str = ""
    name: str = ""
    prompt: str = ""
    messages: list[Any] | None = None
    keep_alive: float | None = None
    shift: bool | None = None
    options: dict[str, Any] = field(default_factory=dict)


def read(body: bytes) -> Read:
    """What the server makes of a body.

    Raises:
        GoRefusesError: it is not read to the end.
    """
    try:
        text = body.decode("utf-8", "replace").lstrip(" \t\r\n")
        pairs, _ = json.JSONDecoder(object_pairs_hook=Pairs, parse_constant=_refuse).raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise GoRefusesError from error
    if not isinstance(pairs, Pairs):
        raise GoRefusesError
    found = Read()
    for key, value in pairs.items:
        name = next((one for one in Read.__dataclass_fields__ if go_fold(one) == go_fold(key)), None)
        if name is not None:
            _assign(found, name, value)
    return found


class Pairs:
    """An object with all its pairs, in order."""

    def __init__(self, items: list[tuple[str, Any]]) -> None:
        self.items = items


def unloads(route: str, found: Read) -> bool:
    """Whether the server takes the request for "unload this model"."""
    idle = {"/api/generate": found.prompt == "", "/api/chat": not found.messages}.get(route, False)
    return idle and found.keep_alive == 0


def leaves_the_machine(name: str) -> bool:
    """Whether a release with cloud models sends a request for this name away."""
    last = name.strip().rpartition(":")
    tag = last[2].strip().lower()
    return bool(last[1]) and (tag == "cloud" or (tag.endswith("-cloud") and "/" not in tag))


def go_fold(key: str) -> str:
    """`foldName`: each letter as the smallest of those that fold to one another."""
    return "".join(
        {"\u017f": "s", "\u212a": "k"}.get(char, char.lower() if char.isascii() else char) for char in key
    )


def _assign(found: Read, name: str, value: Any) -> None:
    if name == "options":
        _options(found, value)
    elif name == "keep_alive":
        found.keep_alive = None if value is None else _duration(value)
    elif name == "messages":
        if not isinstance(value, list | None):
            raise GoRefusesError
        found.messages = value
    elif name == "shift":
        if not isinstance(value, bool | None):
            raise GoRefusesError
        found.shift = value
    elif value is not None:
        if not isinstance(value, str):
            raise GoRefusesError
        setattr(found, name, value)


def _options(found: Read, value: Any) -> None:
    if value is None:
        found.options = {}
        return
    if not isinstance(value, Pairs):
        raise GoRefusesError
    found.options |= dict(value.items)


def _duration(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise GoRefusesError
    if isinstance(value, str):
        nanoseconds = _parsed(value)
    else:
        nanoseconds = FOREVER if value < 0 else int(value * 10**9) if abs(value) < 1e290 else _refuse("1e400")
    if not isinstance(nanoseconds, float) and abs(nanoseconds) >= 2**63:
        return -(2**63)  # as amd64 converts it, and less than no time to the scheduler
    return FOREVER if nanoseconds < 0 else nanoseconds


def _parsed(text: str) -> int:
    """`time.ParseDuration`, in whole nanoseconds."""
    body = text[1:] if text[:1] in {"+", "-"} else text
    if body == "0":
        return 0
    if not re.fullmatch(r"(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+", body):
        raise GoRefusesError
    total = 0
    for whole, part, unit in re.findall(r"([0-9]*)(\.[0-9]*)?(ns|us|µs|μs|ms|s|m|h)", body):
        fraction = (part or ".")[1:]
        total += int(whole or 0) * UNITS[unit]
        total += int(int(fraction or 0) * (UNITS[unit] / 10 ** len(fraction)))
    if total >= 2**63:
        raise GoRefusesError
    return -total if text.startswith("-") else total


def _refuse(_text: str) -> Any:
    raise GoRefusesError
