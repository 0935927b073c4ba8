"""Structured log lines: one per commitment and per health change, on standard error.

`2026-11-30T08:00:00.000Z held upstream=llama job=7 why="the borrower left"`. Values that need it are quoted
as JSON, so a line can be read by people and taken apart by tools.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime

PLAIN = re.compile(r"[A-Za-z0-9_./:@%+-]+\Z")
LOGGER = logging.getLogger("vacancy")
WARNINGS = frozenset({"cannot listen", "configuration refused", "store set aside", "usage not saved"})
"""Events that somebody has to act upon: shown with `--quiet` too."""


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
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Format())
    LOGGER.handlers[:] = [handler]
    LOGGER.setLevel(level)
    LOGGER.propagate = False


class _Format(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        text = f"{at.replace('+00:00', 'Z')} {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def _value(value: object) -> str:
    text = str(value)
    return text if PLAIN.match(text) else json.dumps(text)
