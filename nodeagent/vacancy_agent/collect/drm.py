"""Whose load a GPU has, from the counters that its kernel driver keeps for each client (fdinfo).

Invariant: a load is the difference of two looks not far apart. The first look tells nothing, and neither does
one after a pause: an average over an hour is no load.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Seconds
from vacancy_agent.core.owner_load import Attributed, Failed, GpuUser, NotPossible, Total
from vacancy_agent.platform.linux.amdgpu import DEVICES, AmdGpu, AmdGpuError
from vacancy_agent.platform.linux.ancestry import Ancestry
from vacancy_agent.platform.linux.fdinfo import PROC, FdinfoError, UnseenProcessesError, holders, loads
from vacancy_agent.platform.threads import Aside, StuckError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from vacancy_agent.clock import Clock
    from vacancy_agent.core.facts import Instant, ProcessIdentity
    from vacancy_agent.core.owner_load import LoadSample
    from vacancy_agent.core.parse.fdinfo import DrmClient
    from vacancy_agent.core.settings import ResourceSettings
    from vacancy_agent.platform.linux.fdinfo import Holder

DEADLINE = Seconds(5.0)
LONGEST = Seconds(30.0)
"""Seconds between two looks past which their difference is no load."""

_Clients = dict[tuple[str, int], "DrmClient"]


class DrmProbe:
    """Reads the clients of one AMD GPU."""

    def __init__(
        self,
        resource: ResourceSettings,
        clock: Clock,
        *,
        served: Mapping[str, ProcessIdentity],
        may_use_total: bool,
        devices: Path = DEVICES,
        proc: Path = PROC,
    ) -> None:
        """What it needs of others.

        Args:
            resource: which device.
            clock: for the sample's time.
            served: by upstream, the process that serves it; kept up to date by its owner.
            may_use_total: where clients cannot be told apart, give the total (`mode: fixed`).
            devices: sysfs's PCI devices.
            proc: the process table.
        """
        self._device = resource.device
        self._clock = clock
        self._served = served
        self._may_use_total = may_use_total
        self._devices = devices
        self._proc = proc
        self._aside: Aside[LoadSample] = Aside(f"clients of {resource.name}")
        self._before: tuple[Seconds, _Clients] | None = None

    async def sample(self) -> LoadSample:
        """Take one sample; never raises for what the driver or the processes do."""
        try:
            return await self._aside.run(partial(self._read, dict(self._served)), DEADLINE)
        except (StuckError, TimeoutError):
            return Failed("the clients of the GPU cannot be listed: the kernel does not answer")

    def woke(self) -> None:
        """Counters from before a sleep make no load."""
        self._before = None

    def _read(self, served: Mapping[str, ProcessIdentity]) -> LoadSample:
        at = self._clock.now()
        try:
            gpu = AmdGpu.find(self._device, self._devices)
            if gpu.asleep:
                return Attributed(gpu.pci, (), at)  # what is powered down does nothing; asking would wake it
            percent = gpu.load()
            total = None if percent is None else Total(percent, at)
            found = holders(gpu.pci, self._proc)
        except UnseenProcessesError as error:
            return total if self._may_use_total and total is not None else NotPossible(str(error))
        except (AmdGpuError, FdinfoError) as error:
            return Failed(str(error))
        except OSError as error:
            return Failed(f"the processes cannot be listed: {error.strerror}")
        return self._difference(gpu.pci, found, Ancestry(served, self._proc), at, total)

    def _difference(
        self, pci: str, found: tuple[Holder, ...], ancestry: Ancestry, at: Instant, total: Total | None
    ) -> LoadSample:
        now = self._clock.awake()
        before, self._before = self._before, (now, {one.client.key: one.client for one in found})
        if before is None or not 0.0 < now - before[0] <= LONGEST:
            return Failed("the load of the GPU's clients is being measured for the first time")
        elapsed = now - before[0]
        users = (
            GpuUser(loads(before[1], one.client, elapsed), ancestry.upstreams_of(one.pids)) for one in found
        )
        return Attributed(pci, tuple(users), at, total)
