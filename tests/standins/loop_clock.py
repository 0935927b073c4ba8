"""The agent's clock in tests whose time is the loop's (`looptime`)."""

from __future__ import annotations

import asyncio

from vacancy_agent.core.facts import Instant, Seconds, WallTime


class LoopClock:
    """Every clock is the running loop's."""

    def now(self) -> Instant:
        return Instant(asyncio.get_running_loop().time())

    def awake(self) -> Seconds:
        return Seconds(self.now())

    def wall(self) -> WallTime:
        return WallTime(self.now())
