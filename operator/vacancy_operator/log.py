"""Log lines of the operator: an event and its facts, one line each on standard error."""

from __future__ import annotations

import json
import logging
import re
import sys
import time

LOGGER = logging.getLogger("vacancy.operator")
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+-]+\Z")


def tell(event: str, **facts: object) -> None:
    """Log one event: `lost host=box since=...`."""
    LOGGER.info("%s", line(event, facts))


class Trouble:
    """Something that fails again and again is told once, and that it is over, once."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._told = False

    def met(self, error: object) -> None:
        """It failed."""
        if not self._told:
            self._told = True
            tell(f"{self._what} failed", error=error)

    def over(self) -> None:
        """It worked."""
        if self._told:
            self._told = False
            tell(f"{self._what} works again")


def line(event: str, facts: dict[str, object]) -> str:
    """The text of an event; what is not one plain word is quoted as JSON."""
    return " ".join([event, *(f"{key}={_quoted(str(value))}" for key, value in facts.items())])


def set_up(level: int = logging.INFO) -> None:
    """Send log lines to standard error, and leave kopf's own words out: it repeats itself for each watch."""
    handler = logging.StreamHandler(sys.stderr)
    form = logging.Formatter("%(asctime)s.%(msecs)03dZ %(message)s", "%Y-%m-%dT%H:%M:%S")
    form.converter = time.gmtime
    handler.setFormatter(form)
    LOGGER.handlers[:] = [handler]
    LOGGER.setLevel(level)
    LOGGER.propagate = False
    logging.getLogger("kopf").setLevel(logging.CRITICAL)


def _quoted(text: str) -> str:
    return text if _PLAIN.match(text) else json.dumps(text)
