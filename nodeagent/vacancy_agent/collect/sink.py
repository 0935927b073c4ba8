"""Where observations go. The collectors know this much of the rest of the agent, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from vacancy_agent.core.facts import Capacity, Instant, Presence, Reading
    from vacancy_agent.core.owner_load import LoadSample


class Sink(Protocol):
    """Takes readings and the machine's sleep. Called on the event loop only; must not block or raise.

    `Ready.at` is when the sample *began*. A failed attempt is written as `Unknown` at once; whoever judges
    freshness keeps the time of the last `Ready` itself, because only it knows `now`.
    """

    def set_capacity(self, resource: str, reading: Reading[Capacity]) -> None:
        """A new reading of the resource with this configured name."""
        ...

    def set_pressure(self, resource: str, sample: LoadSample) -> None:
        """What came of looking whose load the resource has."""
        ...

    def set_presence(self, reading: Reading[Presence]) -> None:
        """A new presence reading."""
        ...

    def suspending(self, now: Instant) -> None:
        """The machine is about to sleep: stop lending until `resumed`."""
        ...

    def resumed(self, now: Instant) -> None:
        """The machine slept, or did not after all: every reading is stale until it is taken again."""
        ...
