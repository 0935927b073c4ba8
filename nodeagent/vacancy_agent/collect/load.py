"""The pressure loops: one for each GPU whose load is judged, each with a probe and a cadence of its own.

Invariant: whatever a load probe does, presence and capacity are sampled as if it were not there: it shares
neither their loops nor their child processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from vacancy_agent.collect.loop import CadenceLoop
from vacancy_agent.core.facts import Ready, Unknown
from vacancy_agent.core.owner_load import Failed, NotPossible

if TYPE_CHECKING:
    from vacancy_agent.clock import Clock
    from vacancy_agent.collect.freshness import Freshness
    from vacancy_agent.collect.sink import Sink
    from vacancy_agent.core.facts import Seconds
    from vacancy_agent.core.owner_load import LoadSample


class LoadProbe(Protocol):
    """Reads whose load a device has; never raises for what the device or its driver does."""

    async def sample(self) -> LoadSample:
        """Take one sample."""
        ...

    def woke(self) -> None:
        """The machine slept: what was read before is of no use, and what hung before may not any more."""
        ...


class NoLoadProbe:
    """For a platform that cannot tell."""

    async def sample(self) -> LoadSample:
        """Say so."""
        return NotPossible("on this platform a GPU's load cannot be told by process yet")

    def woke(self) -> None:
        """Nothing was read before."""


class LoadLoop:
    """Samples the load of one resource."""

    def __init__(
        self, name: str, probe: LoadProbe, sink: Sink, clock: Clock, freshness: Freshness, interval: Seconds
    ) -> None:
        """`name` is the resource's."""
        self._name = name
        self.probe = probe
        self._sink = sink
        self._clock = clock
        self._freshness = freshness
        self.cadence = CadenceLoop(self._sample, interval=interval)

    async def _sample(self) -> None:
        began = self._clock.now()
        sample = await self.probe.sample()
        judged = self._freshness.judged(Ready(sample, began), began, self._clock.now())
        self._sink.set_pressure(self._name, Failed(judged.why) if isinstance(judged, Unknown) else sample)
