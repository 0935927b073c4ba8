"""Looks at what one upstream's server holds, while that may change and whenever somebody asks.

Invariant: a look that fails leaves the last one, marked stale; it never turns into "holds nothing". While
nobody works a server is looked at seldom, and a llama-server not at all: to look at its slots keeps it from
going to sleep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.collect.loop import CadenceLoop
from vacancy_agent.core.facts import Seconds, Stale, Unknown
from vacancy_agent.core.shown import ModelsShown, SlotsShown
from vacancy_agent.upstreams.ask import AskError

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_agent.clock import Clock
    from vacancy_agent.core.facts import Instant, Reading
    from vacancy_agent.core.shown import Shown
    from vacancy_agent.upstreams.holdings import Holdings

APART = 0.25
"""Seconds between two looks that follow the ends of jobs: many short ones must not be many looks."""
IDLE_EVERY = 10.0
"""Seconds between two looks at a server on which nobody works."""


class HoldingsWatch:
    """One upstream's observation.

    Args:
        holdings: the server.
        write: where a reading goes.
        working: whether borrowed work is there, or may be.
        clock: dates the looks.
        interval: between two looks while something may change.
    """

    def __init__(
        self,
        holdings: Holdings,
        write: Callable[[Reading[Shown]], None],
        working: Callable[[], bool],
        clock: Clock,
        interval: Seconds,
    ) -> None:
        self._holdings = holdings
        self._write = write
        self._working = working
        self._clock = clock
        self._loop = CadenceLoop(self._sample, interval=interval)
        self._asked = False
        self._looked_at: Instant | None = None
        self._reading: Reading[Shown] = Unknown("not observed yet")

    async def run(self) -> None:
        """Look for ever; the first look comes at once."""
        await self._loop.run()

    def soon(self) -> None:
        """What it holds may have changed: look at once, or with the next interval if that was done just now.

        Whoever needs it sooner asks. A look must come: what began before the change has not seen it, and to
        a server that held nothing then, the next one is far away.
        """
        self._asked = True
        if self._looked_at is None or self._clock.now() - self._looked_at >= APART:
            self._loop.request()

    async def fresh(self, within: Seconds) -> None:
        """Wait for a look that begins after this call, `within` seconds at most."""
        self._asked = True
        await self._loop.sample_once(within)

    async def _sample(self) -> None:
        now = self._clock.now()
        if not (self._asked or self._due(now)):
            return
        self._asked, self._looked_at = False, now
        try:
            self._reading = await self._holdings.look()
        except AskError as error:
            known = self._reading
            why = str(error)
            self._reading = Unknown(why) if isinstance(known, Unknown) else Stale(known.value, known.at, why)
        self._write(self._reading)

    def _due(self, now: Instant) -> bool:
        if self._looked_at is None or self._working():
            return True
        shown = None if isinstance(self._reading, Unknown) else self._reading.value
        if isinstance(shown, SlotsShown):
            return False
        some_model = isinstance(shown, ModelsShown) and bool(shown.models)
        return some_model or now - self._looked_at >= IDLE_EVERY
