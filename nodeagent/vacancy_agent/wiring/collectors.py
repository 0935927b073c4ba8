"""The observation of one configuration, and capacity samples on demand."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from vacancy_agent.collect.observers import Observers
from vacancy_agent.core.facts import ProcessIdentity, Seconds
from vacancy_agent.core.settings import ResourceType
from vacancy_agent.platform.select import presence_source
from vacancy_agent.upstreams.process import NotFound, is_alive
from vacancy_agent.wiring.supervise import essential

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vacancy_agent.clock import Clock
    from vacancy_agent.collect.sink import Sink
    from vacancy_agent.core.settings import HostSettings
    from vacancy_agent.upstreams.local import LocalServer

FRESH = Seconds(1.0)
"""An admission waits this long for the sample after a job."""
FIND_EVERY_S = 60.0
"""Between two searches for the process behind an upstream, unless the known one ended or nothing listens.

A search looks at every descriptor of every process, which is a hundredth of a second and more.
"""
INLINE = frozenset({ResourceType.MEMORY, ResourceType.CPU})


class Collectors:
    """What observes, for the configuration that runs."""

    def __init__(self, clock: Clock, processes: dict[str, ProcessIdentity]) -> None:
        """`processes` is kept up to date with the process behind each upstream."""
        self._clock = clock
        self._processes = processes
        self._group: asyncio.TaskGroup | None = None
        self._loop: asyncio.AbstractEventLoop
        self._observers: Observers | None = None
        self._abandoned_before = 0
        self._observing: asyncio.Task[None] | None = None
        self._observed: tuple[object, ...] | None = None
        """What the observers that run were made from."""
        self._finding: dict[str, tuple[LocalServer, float, asyncio.Task[None]]] = {}
        self._sampling: set[asyncio.Task[None]] = set()
        self._after_work: dict[str, asyncio.Task[None]] = {}
        """By resource, the sample that was asked for when its last job ended."""
        self._inline: frozenset[str] = frozenset()
        self._wanted: set[str] = set()

    def start(
        self,
        group: asyncio.TaskGroup,
        settings: HostSettings,
        sink: Sink,
        servers: Mapping[str, LocalServer],
    ) -> None:
        """Observe what these settings name; what is the same as before goes on without a gap."""
        self._group = group
        self._loop = (
            asyncio.get_running_loop()
        )  # each further call would be a system call, in a request's path
        self._observe(group, settings, sink)
        interval = settings.sampling.interval
        for name, (server, every, task) in list(self._finding.items()):
            if (servers.get(name), interval) != (server, every):
                task.cancel()
                del self._finding[name]
                self._processes.pop(name, None)
        for name, server in servers.items():
            if name not in self._finding:
                find = partial(self._find, name, server, interval)
                task = group.create_task(essential(f"the search for the server of {name}", find))
                self._finding[name] = (server, interval, task)

    def stop(self) -> None:
        """Observe nothing; programs that run are killed."""
        for task in (self._observing, *(task for _, _, task in self._finding.values()), *self._sampling):
            if task is not None:
                task.cancel()
        self._finding.clear()
        self._after_work.clear()
        self._abandoned_before = self.abandoned_probes
        self._group = self._observers = self._observing = self._observed = None

    def _observe(self, group: asyncio.TaskGroup, settings: HostSettings, sink: Sink) -> None:
        wanted = (settings.owner, settings.sampling, settings.resources)
        if wanted == self._observed:
            return
        if self._observing is not None:
            self._observing.cancel()
        self._abandoned_before = self.abandoned_probes
        resources = settings.resources.values()
        self._inline = frozenset(one.name for one in resources if one.type in INLINE)
        source = presence_source(settings, self._clock)
        self._observers = Observers(settings, sink, self._clock, source, self._processes)
        self._observing = group.create_task(essential("the collector", self._observers.run))
        self._observed = wanted

    @property
    def abandoned_probes(self) -> int:
        """Programs that were given up since the start, because they hang in the kernel."""
        now = 0 if self._observers is None else self._observers.abandoned_probes
        return self._abandoned_before + now

    # Samples on demand (`proxy.host.Sampler`).

    def now(self, resource: str) -> bool:
        """Read this resource within the call; False when it takes a probe."""
        if self._observers is None or resource not in self._inline:
            return False
        self._observers.sample_now((resource,))
        return True

    def soon(self, resources: Iterable[str]) -> None:
        """Start a sample of each of these, after the reply that is being written has gone out."""
        if not self._wanted:
            self._loop.call_soon(self._sample_wanted)
        self._wanted.update(resources)

    async def fresh(self, resources: Iterable[str]) -> None:
        """Wait until each was sampled after its last job ended, 1 s at most.

        Where that sample is under way it is waited for: a second run of the same probe, begun only after the
        first, would mostly come too late.
        """
        names = set(resources)
        coming = {name: task for name, task in self._after_work.items() if name in names and not task.done()}
        if names - coming.keys():
            await self._sample(names - coming.keys())
        if coming:
            await asyncio.wait(coming.values(), timeout=FRESH)

    async def _sample(self, resources: Iterable[str]) -> None:
        if self._observers is not None:
            await self._observers.sample(resources, FRESH)

    def _sample_wanted(self) -> None:
        wanted, self._wanted = self._wanted, set()
        if self._observers is None or self._group is None:
            return
        self._observers.sample_now(wanted)
        probed = wanted - self._inline
        if probed:
            task = self._group.create_task(self._sample(probed))
            self._after_work |= dict.fromkeys(probed, task)
            self._sampling.add(task)
            task.add_done_callback(self._sampling.discard)

    async def _find(self, upstream: str, server: LocalServer, interval: float) -> None:
        """Know the process behind an upstream before its work is held."""
        while True:
            found = await server.find(fresh=True)
            if isinstance(found, ProcessIdentity):
                self._processes[upstream] = found
            else:
                self._processes.pop(upstream, None)
            absent = isinstance(found, NotFound) and found.nothing_listens
            for _ in range(1 if absent else max(1, int(FIND_EVERY_S / interval))):
                await asyncio.sleep(interval)
                known = self._processes.get(upstream)
                if known is not None and not is_alive(known):
                    break
