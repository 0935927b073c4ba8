"""Durations as resources write them: `30s`, `1h30m`, `500ms`.

The accepted notation is the part of Go's that CEL's `duration()` and kubectl read the same way: whole
numbers, units in falling order, each at most once, no sign. So a manifest means one thing to the API server
and to an agent that has never seen one. Rejected: fractions (`1.5h`), because a second notation for the same
length makes two equal configurations differ; a bare `0` or a number, because it does not say its unit.
"""

from __future__ import annotations

import re

PATTERN = r"^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?([0-9]{1,6}ms)?$"
"""Shape of a duration; the empty string matches it too and is no duration."""
MAX_LENGTH = 32
_SHAPE = re.compile(PATTERN.removesuffix("$") + r"\Z")
_UNITS_MS = (3_600_000, 60_000, 1_000, 1)


class DurationError(ValueError):
    """The text is not a duration; the message says what one looks like."""


def milliseconds(text: str) -> int:
    """Length of `text` in milliseconds.

    Raises:
        DurationError: `text` is not a duration.
    """
    match = _SHAPE.match(text) if text and len(text) <= MAX_LENGTH else None
    if match is None:
        raise DurationError("is not a duration: write whole numbers with units, such as 30s, 1h30m or 500ms")
    return sum(
        int(part.rstrip("hms")) * unit for part, unit in zip(match.groups(), _UNITS_MS, strict=True) if part
    )


def seconds(text: str) -> float:
    """Length of `text` in seconds.

    Raises:
        DurationError: `text` is not a duration.
    """
    return milliseconds(text) / 1000
