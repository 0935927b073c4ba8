"""The capacity loops: one for what the host answers at once, one for each device behind a program.

Invariant: a device that hangs delays no other reading.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from vacancy_agent.collect.loop import CadenceLoop
from vacancy_agent.core.facts import Ready
from vacancy_agent.core.owner_load import Total
from vacancy_agent.core.settings import ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vacancy_agent.clock import Clock
    from vacancy_agent.collect.freshness import Freshness
    from vacancy_agent.collect.host import HostProbe
    from vacancy_agent.collect.sink import Sink
    from vacancy_agent.core.facts import Capacity, Reading, Seconds

_FIRST_LOAD = 0.6  # seconds after the start at which the processors' load can first be told


class DeviceProbe(Protocol):
    """Reads one device; never raises for what the device or its driver does."""

    async def sample(self) -> Reading[Capacity]:
        """Take one sample."""
        ...


class DeviceLoop:
    """Keeps the reading of one device up to date."""

    def __init__(
        self, name: str, probe: DeviceProbe, sink: Sink, clock: Clock, freshness: Freshness, interval: Seconds
    ) -> None:
        """`name` is the resource's."""
        self._name = name
        self._probe = probe
        self._sink = sink
        self._clock = clock
        self._freshness = freshness
        self.cadence = CadenceLoop(self._sample, interval=interval)
        self.looked = asyncio.Event()
        """Set once the first sample has come, whatever came of it."""
        self._load: Total | None = None

    def total(self) -> Total | None:
        """Load of the whole device as read last; None where the last reading has none."""
        return self._load

    async def _sample(self) -> None:
        began = self._clock.now()
        reading = self._freshness.judged(await self._probe.sample(), began, self._clock.now())
        self._load = _total(reading)
        self.looked.set()
        self._sink.set_capacity(self._name, reading)


def _total(reading: Reading[Capacity]) -> Total | None:
    if not isinstance(reading, Ready) or reading.value.utilization is None:
        return None
    return Total(reading.value.utilization, reading.at)


class HostLoop:
    """Keeps memory and processor readings up to date, and takes them at once when asked."""

    def __init__(
        self, resources: Mapping[str, ResourceType], probe: HostProbe, sink: Sink, interval: Seconds
    ) -> None:
        """`resources`: by name, those of type memory and cpu."""
        self._resources = resources
        self._probe = probe
        self._sink = sink
        self.cadence = CadenceLoop(self._sample, interval=interval)

    async def run(self) -> None:
        """Sample for ever; the first load of the processors does not wait for the second poll."""
        first = asyncio.get_running_loop().call_later(_FIRST_LOAD, self.cadence.request)
        try:
            await self.cadence.run()
        finally:
            first.cancel()

    def sample_now(self, names: Iterable[str]) -> None:
        """Write fresh readings of these resources; the others among `names` are not this loop's."""
        for name in names:
            kind = self._resources.get(name)
            if kind is ResourceType.MEMORY:
                self._sink.set_capacity(name, self._probe.memory())
            elif kind is ResourceType.CPU:
                self._sink.set_capacity(name, self._probe.cpu())

    async def _sample(self) -> None:
        self.sample_now(self._resources)
