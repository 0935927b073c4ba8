"""Plain integers that the path of a request counts in; `admin.metrics` publishes them on a scrape.

A Prometheus counter with labels costs a dictionary look-up and a lock per increment. Rejected for the path
of a request, where the product's whole own work has ten microseconds.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vacancy_api.reasons import Reason


class Outcome(StrEnum):
    """How a forwarded work request ended."""

    COMPLETED = "completed"
    CLIENT_CLOSED = "client_closed"
    """The borrower left, or stopped reading. Neither a success nor an error."""
    CANCELLED = "cancelled"
    """Taken back by this host: for its owner, or since the listener had to end."""
    FAILED = "failed"
    """The upstream was not there, died, or answered what cannot be read."""

    __hash__ = str.__hash__  # Enum's own is written in Python, and every request looks one up


class UpstreamCounters:
    """Counts of one upstream since the agent started, over every listener it had."""

    __slots__ = ("admitted", "outcomes", "passed", "refused")

    def __init__(self) -> None:
        self.admitted = 0
        self.passed = 0
        """Pass-through and allowed management requests."""
        self.outcomes: dict[Outcome, int] = dict.fromkeys(Outcome, 0)
        self.refused: Counter[Reason] = Counter()


class AuthCounters:
    """Decisions by scope, the allowed ones included."""

    __slots__ = ("allowed", "denied")

    def __init__(self) -> None:
        self.allowed: Counter[str] = Counter()
        self.denied: Counter[str] = Counter()
