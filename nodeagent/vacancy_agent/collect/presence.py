"""The presence loop: polls, listens, and writes what it sees.

Invariant: a sample that failed is written as unknown at once, and one that came too late is not written as
known. Whether the last known one has expired is judged where `now` is, not here: this loop may be what hangs.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from vacancy_agent.collect.loop import CadenceLoop
from vacancy_agent.core.facts import Presence, Reading, Ready, Unknown
from vacancy_agent.platform.presence import PresenceUnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_agent.clock import Clock
    from vacancy_agent.collect.freshness import Freshness
    from vacancy_agent.collect.sink import Sink
    from vacancy_agent.core.facts import Seconds
    from vacancy_agent.platform.presence import PresenceSource

EVENT_GAP = 0.05
"""Seconds between two samples that signals ask for: at most 20 a second, and none waits longer than that."""


class PresenceLoop:
    """Keeps the sink's presence up to date."""

    def __init__(
        self,
        source: PresenceSource,
        sink: Sink,
        clock: Clock,
        freshness: Freshness,
        *,
        interval: Seconds,
        before: Callable[[], None],
        sleep: Callable[[bool], None],
    ) -> None:
        """`before` is called ahead of every sample; `sleep` before (True) and after (False) a suspend."""
        self._source = source
        self._sink = sink
        self._clock = clock
        self._freshness = freshness
        self._before = before
        self._sleep = sleep
        self._cadence = CadenceLoop(self._sample, interval=interval, min_gap=EVENT_GAP)

    async def run(self) -> None:
        """Poll and listen for ever."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._source.watch(self.request, self._sleep))
                group.create_task(self._cadence.run())
        finally:
            await self._source.close()

    def request(self) -> None:
        """Ask for a sample soon."""
        self._cadence.request()

    async def _sample(self) -> None:
        self._before()
        began = self._clock.now()
        reading: Reading[Presence]
        try:
            reading = Ready(await self._source.read(), began)
        except PresenceUnreadableError as error:
            reading = Unknown(str(error))
        self._sink.set_presence(self._freshness.judged(reading, began, self._clock.now()))
