"""Whether the API server answers, said once, and how long to wait before it is asked again.

Invariant: nobody spins, and nobody sleeps through the return. Every loop waits here between its attempts;
the first call that works after an outage wakes them all, spread over two seconds, and ends open watches, for
a connection through a machine that was gone may never say that it is dead. The heartbeat tries every few
seconds, so that this takes seconds however long the outage was.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vacancy_agent.clock import Clock
    from vacancy_agent.cluster.fault import ApiError
    from vacancy_agent.core.facts import Instant

SPREAD_S = 2.0
"""Over which the loops of many hosts come back."""
FIRST_S, LONGEST_S = 1.0, 20.0
_DICE = secrets.SystemRandom()


class Tell(Protocol):
    """How something is logged."""

    def __call__(self, event: str, **facts: object) -> None:
        """Log one event with its facts."""


def dice() -> float:
    """A number from 0 to 1."""
    return _DICE.random()


class Delays:
    """1 s, doubled with each failure up to `longest`, and each a random half to one of that."""

    def __init__(self, longest: float = LONGEST_S) -> None:
        self._longest = longest
        self._next = FIRST_S

    def reset(self) -> None:
        """It worked."""
        self._next = FIRST_S

    def next(self) -> float:
        """Seconds to wait after another failure."""
        wait, self._next = self._next, min(self._longest, self._next * 2)
        return wait * (0.5 + dice() / 2)


class Link:
    """One for an agent."""

    def __init__(self, clock: Clock, tell: Tell) -> None:
        self._clock = clock
        self._tell = tell
        self._troubles: dict[str, str] = {}
        self._down_since: Instant | None = None
        self._back = asyncio.Event()
        self._open: set[asyncio.Timeout] = set()

    def failed(self, what: str, fault: ApiError) -> None:
        """A call failed; logged when it is news."""
        kind = "no answer" if fault.status is None else str(fault.status)
        if fault.outage and self._down_since is None:
            self._down_since = self._clock.now()
            self._tell("cluster unreachable", what=what, why=fault)
        elif not fault.outage and self._troubles.get(what) != kind:
            self._tell("cluster refuses", what=what, why=fault)
        self._troubles[what] = kind

    def worked(self, what: str) -> None:
        """A call worked; after an outage everybody goes on."""
        trouble = self._troubles.pop(what, None)
        if self._down_since is not None:
            gone = self._clock.now() - self._down_since
            self._down_since = None
            self._troubles.clear()
            self._tell("cluster reached again", after_s=round(gone, 1))
            self._wake()
        elif trouble is not None:
            self._tell("cluster accepts again", what=what)

    async def rest(self, seconds: float) -> None:
        """Wait, but not beyond the return of the API server."""
        back = self._back
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await back.wait()
                await asyncio.sleep(dice() * SPREAD_S)

    @contextlib.contextmanager
    def watching(self, limit: asyncio.Timeout) -> Iterator[None]:
        """End what runs under this limit soon after the API server returned."""
        self._open.add(limit)
        try:
            yield
        finally:
            self._open.discard(limit)

    def connect_anew(self) -> None:
        """Whatever is open may be dead without a word: end the watches, and let nobody wait any longer."""
        self._wake()

    def _wake(self) -> None:
        self._back.set()
        self._back = asyncio.Event()
        loop = asyncio.get_running_loop()
        for limit in self._open:
            if not limit.expired():
                limit.reschedule(loop.time() + dice() * SPREAD_S)
