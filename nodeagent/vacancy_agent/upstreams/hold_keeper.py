"""Looks for the proof that held jobs have ended, for as long as there are any.

Invariant: a server is looked at only while a job of it is held, by one task per upstream whatever the number
of its holds. What is found is handed to `ended` on the loop, at once; the keeper itself changes nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Instant, Seconds
from vacancy_agent.upstreams import proofs
from vacancy_agent.upstreams.proofs import SETTLE
from vacancy_agent.upstreams.sighting import Idle, Unclear

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from vacancy_agent.clock import Clock
    from vacancy_agent.upstreams.local import LocalServer
    from vacancy_agent.upstreams.proofs import Ended, HeldJob
    from vacancy_agent.upstreams.sighting import Watcher

BETWEEN = Seconds(1.5)
"""Between two looks at a server that works."""
LONGEST = Seconds(10.0)
"""Between two looks at one that does not answer; each failure doubles the wait up to this."""


@dataclass(frozen=True, slots=True)
class Watched:
    """One upstream whose holds are looked after."""

    watcher: Watcher
    local: LocalServer | None = None
    """Its process, where it may be on this machine."""
    assume_ended_after: Seconds | None = None


class HoldKeeper:
    """One for a host."""

    def __init__(
        self,
        clock: Clock,
        holds: Callable[[str], Sequence[HeldJob]],
        ended: Callable[[str, tuple[Ended, ...]], None],
    ) -> None:
        """Keep watch.

        Args:
            clock: The agent's.
            holds: The held jobs of an upstream, now.
            ended: Told of jobs that ended; afterwards `holds` no longer names them.
        """
        self._clock = clock
        self._holds = holds
        self._ended = ended
        self._upstreams: dict[str, Watched] = {}
        self._wake = asyncio.Event()
        self._watching: set[str] = set()
        self.last: dict[str, str] = {}
        """Why the holds of an upstream are still held, as the last look showed; for people."""

    def configure(self, upstreams: Mapping[str, Watched]) -> None:
        """Watch these from now on. Holds of others stay as they are."""
        self._upstreams = dict(upstreams)
        self.nudge()

    def nudge(self) -> None:
        """A job is held since a moment: start looking."""
        self._wake.set()

    async def run(self) -> None:
        """Keep watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._wake.wait()
                self._wake.clear()
                for upstream in self._upstreams:
                    if upstream not in self._watching and self._holds(upstream):
                        self._watching.add(upstream)
                        group.create_task(self._watch(upstream))

    async def _watch(self, upstream: str) -> None:
        pause = BETWEEN
        try:
            while (watched := self._upstreams.get(upstream)) is not None:
                await self._free_without_look(upstream, watched)
                jobs = self._holds(upstream)
                if not jobs:
                    return
                earliest = max(min(job.closed_at for job in jobs) + SETTLE, self._clock.now())
                sighting = await watched.watcher.look(Instant(earliest))
                self._report(upstream, proofs.by_sighting(self._holds(upstream), sighting))
                if not self._holds(upstream):
                    return
                self.last[upstream] = "held again" if isinstance(sighting, Idle) else sighting.why
                pause = min(Seconds(pause * 2), LONGEST) if isinstance(sighting, Unclear) else BETWEEN
                await asyncio.sleep(pause)
        finally:
            self._watching.discard(upstream)
            self.last.pop(upstream, None)

    async def _free_without_look(self, upstream: str, watched: Watched) -> None:
        gone = {
            job.id
            for job in self._holds(upstream)
            if watched.local is not None
            and job.process is not None
            and await watched.local.replaced(job.process, job.admitted)
        }
        jobs = self._holds(upstream)
        found = {ended.job: ended for ended in proofs.by_process(jobs, gone)}
        for ended in proofs.by_assumption(jobs, watched.assume_ended_after, self._clock.now()):
            found.setdefault(ended.job, ended)
        self._report(upstream, tuple(found.values()))

    def _report(self, upstream: str, ended: tuple[Ended, ...]) -> None:
        if ended:
            self._ended(upstream, ended)
