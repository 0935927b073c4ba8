"""The log's commitments, counted: what is told once per commitment is a counter without a second account.

It stands where the agent tells its events, counts the few kinds that metrics want, and passes all of them on.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vacancy_agent.proxy.host import Journalist

Counts = Counter[tuple[str, str]]
"""By upstream and kind."""


class Events:
    """A `proxy.host.Journalist`."""

    def __init__(self, tell: Journalist) -> None:
        """`tell` gets every event."""
        self._tell = tell
        self.freed: Counts = Counter()
        """Holds, by what freed them."""
        self.reclaims: Counts = Counter()
        """Decisions of reclaims, by phase."""
        self.unloads: Counts = Counter()
        """Reports of unloads, by reason."""
        self._counted = {
            "freed": (self.freed, "by"),
            "reclaim": (self.reclaims, "phase"),
            "reclaimed": (self.unloads, "reason"),
        }

    def __call__(self, event: str, **facts: object) -> None:
        """Count the event if it is one of those, and tell it."""
        counted = self._counted.get(event)
        if counted is not None:
            counts, fact = counted
            counts[str(facts["upstream"]), str(facts[fact])] += 1
        self._tell(event, **facts)
