"""A sink that keeps what it was given."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_agent.core.facts import Capacity, Instant, Presence, Reading
    from vacancy_agent.core.owner_load import LoadSample


class RecordingSink:
    """Keeps every reading in order; `until` waits for one that fits."""

    def __init__(self) -> None:
        self.capacity: defaultdict[str, list[Reading[Capacity]]] = defaultdict(list)
        self.pressure: defaultdict[str, list[LoadSample]] = defaultdict(list)
        self.presence: list[Reading[Presence]] = []
        self.sleeps: list[tuple[str, Instant]] = []
        self._waiting: list[asyncio.Event] = []

    def set_capacity(self, resource: str, reading: Reading[Capacity]) -> None:
        self.capacity[resource].append(reading)
        self._tell()

    def set_pressure(self, resource: str, sample: LoadSample) -> None:
        self.pressure[resource].append(sample)
        self._tell()

    def set_presence(self, reading: Reading[Presence]) -> None:
        self.presence.append(reading)
        self._tell()

    def suspending(self, now: Instant) -> None:
        self.sleeps.append(("suspending", now))
        self._tell()

    def resumed(self, now: Instant) -> None:
        self.sleeps.append(("resumed", now))
        self._tell()

    async def until(self, fits: Callable[[RecordingSink], object], within: float = 10.0) -> None:
        """Wait until `fits` holds of what was recorded; every new entry is looked at as it comes."""
        news = asyncio.Event()
        self._waiting.append(news)
        try:
            async with asyncio.timeout(within):
                while not fits(self):
                    news.clear()
                    await news.wait()
        finally:
            self._waiting.remove(news)

    def _tell(self) -> None:
        for news in self._waiting:
            news.set()
