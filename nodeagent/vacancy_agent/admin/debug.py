"""A bounded time in which every request is told; it ends by itself and outlives nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import WallTime
from vacancy_agent.core.rfc3339 import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_agent.clock import Clock
    from vacancy_agent.proxy.host import Journalist

LONGEST_S = 3600.0
"""Whoever needs longer opens another one."""


class DebugWindow:
    """One for an agent; nothing of it is kept on the disk."""

    def __init__(self, watch: Callable[[bool], None], clock: Clock, tell: Journalist) -> None:
        """`watch` has every request told (True), also those of listeners to come, or not any more (False)."""
        self._watch = watch
        self._clock = clock
        self._tell = tell
        self._end: asyncio.TimerHandle | None = None
        self.until: WallTime | None = None
        """When the window that is open ends; None: none is."""

    def open(self, seconds: float) -> None:
        """Tell every request for so long from now; 0 ends it."""
        if self._end is not None:
            self._end.cancel()
        if seconds <= 0:
            self.close()
            return
        self._end = asyncio.get_running_loop().call_later(seconds, self.close)
        self.until = WallTime(self._clock.wall() + seconds)
        self._watch(True)
        self._tell("debug window", until=rfc3339(self.until))

    def close(self) -> None:
        """End it."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if self.until is not None:
            self.until = None
            self._watch(False)
            self._tell("debug window", until="ended")
