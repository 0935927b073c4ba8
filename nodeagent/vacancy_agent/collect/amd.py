"""Capacity of one AMD GPU, out of sysfs.

Invariant: what can be lent is memory that is there. An APU's own memory is a carve-out of a few hundred MiB;
what its programs use is the host's (GTT), of which the driver counts what the GPU has, and the host what
everybody else has. So the smaller of the two is free. Rejected: the carve-out, which no model fits, and the
GTT figure alone, which counts memory that the owner's programs hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.core.facts import MemoryCapacity, MiB, Ready, Seconds, Unknown
from vacancy_agent.platform.linux.amdgpu import DEVICES, AmdGpu, AmdGpuError
from vacancy_agent.platform.threads import Aside, StuckError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from vacancy_agent.clock import Clock
    from vacancy_agent.core.facts import Capacity, Reading
    from vacancy_agent.core.settings import ResourceSettings
    from vacancy_agent.platform.linux.amdgpu import AmdMemory

DEADLINE = Seconds(5.0)
CARVE_OUT = MiB(1024)
"""A GPU with so little memory of its own, and more of the host's, is part of the processor."""


class AmdProbe:
    """Reads the device of one resource."""

    def __init__(
        self,
        resource: ResourceSettings,
        clock: Clock,
        *,
        host_memory: Callable[[], Reading[Capacity]],
        devices: Path = DEVICES,
    ) -> None:
        """`host_memory`: memory that programs of the host can have; `devices`: sysfs's PCI devices."""
        self._resource = resource
        self._clock = clock
        self._host_memory = host_memory
        self._devices = devices
        self._aside: Aside[Reading[Capacity]] = Aside(f"amdgpu {resource.name}")

    async def sample(self) -> Reading[Capacity]:
        """Take one sample; never raises for what the driver or the card does."""
        try:
            return await self._aside.run(self._read, DEADLINE)
        except (StuckError, TimeoutError):
            return Unknown("amdgpu does not answer")

    def _read(self) -> Reading[Capacity]:
        at = self._clock.now()
        try:
            gpu = AmdGpu.find(self._resource.device, self._devices)
            if gpu.asleep:
                return Unknown("the GPU is powered down, and asking would wake it")
            memory = gpu.memory()
        except AmdGpuError as error:
            return Unknown(str(error))
        if not self._resource.unified and not shares_memory(memory):
            return Ready(MemoryCapacity(memory.vram.free, memory.vram.total, gpu.load()), at)
        host = self._host_memory()
        if not isinstance(host, Ready) or not isinstance(host.value, MemoryCapacity):
            return host
        free, total = min(memory.gtt.free, host.value.free), min(memory.gtt.total, host.value.total)
        return Ready(MemoryCapacity(MiB(free), MiB(total), gpu.load()), at)


def shares_memory(memory: AmdMemory) -> bool:
    """Whether the GPU works in the host's memory."""
    return memory.vram.total <= CARVE_OUT and memory.gtt.total > memory.vram.total
