"""One upstream's process on this machine, looked at beside the loop."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Instant, ProcessIdentity, Seconds
from vacancy_agent.platform.threads import Aside, StuckError
from vacancy_agent.upstreams.process import (
    NotFound,
    NotLocal,
    Relayed,
    began_after,
    is_alive,
    sample_tree,
    serving_process,
)
from vacancy_agent.upstreams.quiet import STEP, Busy, Quiet, judge
from vacancy_agent.upstreams.sighting import Idle, Unclear, Working
from vacancy_agent.upstreams.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_agent.clock import Clock
    from vacancy_agent.core.settings import Target
    from vacancy_agent.upstreams.process import Serving
    from vacancy_agent.upstreams.quiet import TreeSample
    from vacancy_agent.upstreams.sighting import Sighting

DEADLINE = Seconds(5.0)
PATIENCE = Seconds(6.0)
"""A look at a server that works lasts this long: its end is noticed as soon as the window is full."""
IDENTITY_AGE = Seconds(5.0)
"""A look at all listening sockets costs milliseconds; one is good for this long."""


class LocalServer:
    """Who serves a target, and whether it is quiet."""

    def __init__(
        self, target: Target, clock: Clock, gpu_use: Callable[[], float | None] = lambda: None
    ) -> None:
        """Nothing is looked at before the first call.

        Args:
            target: of the upstream.
            clock: for the times of samples.
            gpu_use: percent of a GPU that its processes used a moment ago; None where that is not told.
        """
        self._gpu_use = gpu_use
        self._target = target
        self._clock = clock
        self._finder: Aside[Serving] = Aside(f"listener of port {target.port}")
        self._sampler: Aside[TreeSample | None] = Aside(f"processes of port {target.port}")
        self._found: Serving = NotFound("not looked yet")
        self._found_at: Instant | None = None

    async def find(self, *, fresh: bool = False) -> Serving:
        """Who serves the target: the last answer while it is young and its process lives, else a new one."""
        known, at = self._found, self._found_at
        young = at is not None and self._clock.now() - at < IDENTITY_AGE
        if fresh or not young or (isinstance(known, ProcessIdentity) and not is_alive(known)):
            try:
                self._found = await self._finder.run(partial(serving_process, self._target), DEADLINE)
            except (StuckError, TimeoutError):
                self._found = NotFound("the list of listening sockets does not come")
            self._found_at = self._clock.now()
        return self._found

    async def replaced(self, process: ProcessIdentity, admitted: Instant) -> bool:
        """Whether that process has ended, and what serves the target now cannot have the job of `admitted`.

        An agent that merely cannot see a process (another user's, another namespace's) must not take it for
        ended, so the target's present listener has to be seen as well, or that there is none. And a listener
        that was there already when the job was admitted may be the one that got it: `process` was looked up a
        little earlier, and the server can have been restarted in between.
        """
        if is_alive(process):
            return False
        found = await self.find(fresh=True)
        if isinstance(found, ProcessIdentity):
            return began_after(found, admitted)
        return isinstance(found, NotFound) and found.nothing_listens

    async def look(self, not_before: Instant) -> Sighting:
        """Watch the process tree until it is quiet, `PATIENCE` long, from `not_before` at the earliest."""
        await wait_until(self._clock, not_before)
        found = await self.find(fresh=True)
        return await self._watch(found) if isinstance(found, ProcessIdentity) else Unclear(_explain(found))

    async def _watch(self, process: ProcessIdentity) -> Sighting:
        samples: list[TreeSample] = []
        until = self._clock.now() + PATIENCE
        while (sample := await self._sample(process)) is not None:
            samples.append(sample)
            match judge(samples):
                case Quiet(began):
                    return Idle(began, "its processes are quiet")
                case Busy(why) if sample.at >= until:
                    return Working(samples[0].at, why)
            await asyncio.sleep(STEP)
        return Unclear("its process ended, or cannot be looked at")

    async def _sample(self, process: ProcessIdentity) -> TreeSample | None:
        try:
            sample = await self._sampler.run(partial(sample_tree, process, self._clock.now()), DEADLINE)
        except (StuckError, TimeoutError):
            return None
        return None if sample is None else replace(sample, gpu=self._gpu_use())


def _explain(found: NotLocal | NotFound | Relayed) -> str:
    match found:
        case NotLocal():
            return "the server is on another host and does not show that it is idle"
        case Relayed(_, name):
            return f"{name} only relays to the server, whose processes cannot be seen"
        case NotFound(why):
            return why
