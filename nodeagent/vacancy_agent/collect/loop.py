"""A sampling loop that keeps its cadence and can be asked for a sample at once.

Invariant: two samples of one loop never overlap, and the poll comes whether or not anybody asks. Without the
first, a slow probe piles up behind itself; without the second, a lost signal would be a lost owner. The
rejected option is a timer per request, which drifts with every event.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from vacancy_agent.core.facts import Seconds


class CadenceLoop:
    """Calls `sample` every `interval` seconds, and soon after `request`.

    An exception out of `sample` ends `run`: probes turn what they expect to fail into readings, so whatever
    is left is a bug that must be seen.
    """

    def __init__(
        self, sample: Callable[[], Awaitable[None]], *, interval: Seconds, min_gap: float = 0.0
    ) -> None:
        """`min_gap`: seconds between the starts of two samples that were asked for; the poll ignores it."""
        self._sample = sample
        self._interval = interval
        self._min_gap = min_gap
        self._wanted = asyncio.Event()
        self._waiters: list[asyncio.Future[None]] = []
        self._began = -math.inf

    async def run(self) -> None:
        """Sample for ever; the first sample starts at once."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            polled = await self._until(due)
            self._began = loop.time()
            await self._take()
            if polled:
                due += self._interval * (1 + math.floor(max(0.0, loop.time() - due) / self._interval))

    def request(self) -> None:
        """Ask for a sample that begins after this call; any number of requests is answered by one sample."""
        self._wanted.set()

    async def sample_once(self, within: Seconds) -> bool:
        """Wait for a sample that begins after this call; False when none ended within `within` seconds."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self.request()
        try:
            async with asyncio.timeout(within):
                await waiter
        except TimeoutError:
            return False
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        return True

    async def _take(self) -> None:
        self._wanted.clear()
        waiters, self._waiters = self._waiters, []
        try:
            await self._sample()
        finally:
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    async def _until(self, due: float) -> bool:
        """Wait for the poll (True), or for a request once the gap to the last sample has passed (False)."""
        try:
            async with asyncio.timeout_at(due):
                await self._wanted.wait()
                await asyncio.sleep(self._began + self._min_gap - asyncio.get_running_loop().time())
        except TimeoutError:
            return True
        return False
