"""All observation of one configuration: builds the loops, runs them side by side, and tells them of sleep.

Usage::

    observers = Observers(settings, sink, clock, presence_source(settings, clock), served)
    group.create_task(observers.run())
    observers.sample_now(["memory", "cpu"])              # inline: returns with the readings written
    await observers.sample(["gpu"], within=Seconds(1.0)) # after a job: a sample that begins after this call
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from vacancy_agent.clock import SuspendWatch
from vacancy_agent.collect.amd import AmdProbe
from vacancy_agent.collect.capacity import DeviceLoop, DeviceProbe, HostLoop
from vacancy_agent.collect.drm import DrmProbe
from vacancy_agent.collect.freshness import Freshness
from vacancy_agent.collect.host import HostProbe
from vacancy_agent.collect.load import LoadLoop, NoLoadProbe
from vacancy_agent.collect.nvidia import NvidiaProbe
from vacancy_agent.collect.pmon import PmonProbe
from vacancy_agent.collect.presence import PresenceLoop
from vacancy_agent.collect.runner import ProbeRunner
from vacancy_agent.core.facts import Seconds
from vacancy_agent.core.settings import PressureMode, ResourceType
from vacancy_agent.platform.linux.gpu_power import is_suspended

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vacancy_agent.clock import Clock
    from vacancy_agent.collect.load import LoadProbe
    from vacancy_agent.collect.sink import Sink
    from vacancy_agent.core.facts import ProcessIdentity
    from vacancy_agent.core.settings import HostSettings, ResourceSettings
    from vacancy_agent.platform.presence import PresenceSource

NVIDIA_DEADLINE = Seconds(5.0)
_HOST_TYPES = (ResourceType.MEMORY, ResourceType.CPU)


class Observers:
    """The loops that keep a sink's readings up to date."""

    def __init__(
        self,
        settings: HostSettings,
        sink: Sink,
        clock: Clock,
        source: PresenceSource,
        served: Mapping[str, ProcessIdentity],
    ) -> None:
        """`served`: by upstream, the process that serves it; kept up to date by its owner."""
        self._sink = sink
        self._clock = clock
        self._suspends = SuspendWatch(clock)
        self._freshness = Freshness(settings.sampling.stale_after)
        self._host_probe = HostProbe(clock)
        self._runners: list[ProbeRunner] = []
        self._nvidia: dict[str, NvidiaProbe] = {}
        self._served = served
        interval = settings.sampling.interval
        enabled = {name: res for name, res in settings.resources.items() if res.enabled}
        host = {name: res.type for name, res in enabled.items() if res.type in _HOST_TYPES}
        self._host = HostLoop(host, self._host_probe, sink, interval)
        devices = {name: res for name, res in enabled.items() if name not in host}
        self._devices = {
            name: DeviceLoop(name, self._probe(res), sink, clock, self._freshness, interval)
            for name, res in devices.items()
        }
        every = settings.sampling.pressure_interval
        self._loads = {
            name: LoadLoop(name, self._load_probe(res), sink, clock, self._freshness, every)
            for name, res in devices.items()
            if res.pressure.mode is not PressureMode.OFF
        }
        self._presence = PresenceLoop(
            source,
            sink,
            clock,
            self._freshness,
            interval=interval,
            before=self._look_for_a_sleep,
            sleep=self._sleep,
        )

    async def run(self) -> None:
        """Observe for ever. An exception is a bug in here, and ends all loops."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._presence.run(), name="presence")
                group.create_task(self._host.run(), name="host capacity")
                for name, device in self._devices.items():
                    group.create_task(device.cadence.run(), name=f"capacity of {name}")
                for name, load in self._loads.items():
                    group.create_task(self._follow_load(name, load), name=f"load of {name}")
        finally:
            for runner in self._runners:
                runner.kill()

    def sample_now(self, resources: Iterable[str]) -> None:
        """Write fresh readings of those resources that the host answers at once: memory and processors."""
        self._host.sample_now(resources)

    async def sample(self, resources: Iterable[str], within: Seconds) -> bool:
        """Write readings taken after this call; False when one did not come within `within` seconds."""
        names = tuple(resources)
        self._host.sample_now(names)
        devices = [self._devices[name] for name in names if name in self._devices]
        done = await asyncio.gather(*(device.cadence.sample_once(within) for device in devices))
        return all(done)

    @property
    def abandoned_probes(self) -> int:
        """Programs that could not be killed since the start: each is a process that hangs in the kernel."""
        return sum(runner.abandoned for runner in self._runners)

    def _probe(self, resource: ResourceSettings) -> DeviceProbe:
        if resource.type is ResourceType.AMD:
            return AmdProbe(resource, self._clock, host_memory=self._host_probe.memory)
        runner = ProbeRunner(f"nvidia-smi {resource.name}", self._clock, deadline=NVIDIA_DEADLINE)
        probe = NvidiaProbe(
            resource, runner, self._clock, host_memory=self._host_probe.memory, is_suspended=is_suspended
        )
        self._runners.append(runner)
        self._nvidia[resource.name] = probe
        return probe

    async def _follow_load(self, name: str, load: LoadLoop) -> None:
        """Sample a load for ever, once the device has been looked at: by then it is known which one it is."""
        await self._devices[name].looked.wait()
        await load.cadence.run()

    def _load_probe(self, resource: ResourceSettings) -> LoadProbe:
        if sys.platform == "linux":
            return self._linux_load_probe(resource)
        else:  # noqa: RET505 - mypy leaves out a branch of another platform, not what follows one
            return NoLoadProbe()

    def _linux_load_probe(self, resource: ResourceSettings) -> LoadProbe:
        fixed = resource.pressure.mode is PressureMode.FIXED
        if resource.type is ResourceType.AMD:
            return DrmProbe(resource, self._clock, served=self._served, may_use_total=fixed)
        runner = ProbeRunner(f"pmon {resource.name}", self._clock, deadline=NVIDIA_DEADLINE)
        self._runners.append(runner)
        capacity = self._nvidia[resource.name]
        return PmonProbe(
            runner,
            self._clock,
            identity=lambda: capacity.identity,
            total=self._devices[resource.name].total,
            served=self._served,
            is_suspended=is_suspended,
            may_use_total=fixed,
        )

    def _look_for_a_sleep(self) -> None:
        if self._suspends.slept() > 0:
            self._woke()

    def _sleep(self, sleeping: bool) -> None:
        if sleeping:
            self._sink.suspending(self._clock.now())
            return
        self._suspends.slept()  # told now, so not to be noticed again
        self._woke()

    def _woke(self) -> None:
        now = self._clock.now()
        self._freshness.resumed(now)
        self._sink.resumed(now)
        for probe in self._nvidia.values():
            probe.backoff.reset()
        for load in self._loads.values():
            load.probe.woke()
            load.cadence.request()
        self._host.cadence.request()
        for device in self._devices.values():
            device.cadence.request()
        self._presence.request()
