"""Structured log lines: one per commitment and per health change, on standard error.

`2026-11-30T08:00:00.000Z held upstream=llama job=7 why="the borrower left"`. Values that need it are quoted
as JSON, so a line can be read by people and taken apart by tools. The newest lines are kept in memory
too, for `vacancy diagnostics`; what `--quiet` leaves out is among them.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections import deque
from datetime import UTC, datetime

PLAIN = re.compile(r"[A-Za-z0-9_./:@%+-]+\Z")
LOGGER = logging.getLogger("vacancy")
WARNINGS = frozenset({"cannot listen", "configuration refused", "store set aside", "usage not saved"})
"""Events that somebody has to act upon: shown with `--quiet` too."""
KEPT_LINES = 2000
KEPT_CHARACTERS = 1000
"""Of one line. Together they bound the memory."""


def tell(event: str, **facts: object) -> None:
    """Log one event with its facts."""
    level = logging.WARNING if event in WARNINGS else logging.INFO
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, "%s", line(event, facts))


def line(event: str, facts: dict[str, object]) -> str:
    """The text of an event, without its time."""
    return " ".join([event, *(f"{key}={_value(value)}" for key, value in facts.items())])


def set_up(level: int = logging.INFO) -> None:
    """Send log lines to standard error; call it once, in a process of our own."""
    shown = logging.StreamHandler(sys.stderr)
    shown.setFormatter(_Format())
    shown.setLevel(level)
    LOGGER.handlers[:] = [shown, _KEPT]
    LOGGER.setLevel(min(level, logging.INFO))
    LOGGER.propagate = False


def recent() -> list[str]:
    """The newest lines, oldest first."""
    return list(_KEPT.lines)


class _Format(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        text = f"{at.replace('+00:00', 'Z')} {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class _Kept(logging.Handler):
    """A ring: whatever is logged, it does not grow."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(_Format())
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line."""
        self.lines.append(self.format(record)[:KEPT_CHARACTERS])


_KEPT = _Kept()


def _value(value: object) -> str:
    text = str(value)
    return text if PLAIN.match(text) else json.dumps(text)
