"""Capacity of one NVIDIA GPU through nvidia-smi.

Invariant: a reading is of the device that was asked for, or it is unknown. Each device has a run of its own,
because one dead card can keep nvidia-smi from answering for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.collect.backoff import Backoff
from vacancy_agent.collect.child import ChildDeadlineError, ChildError, ChildUnkillableError, Finished
from vacancy_agent.core.facts import MemoryCapacity, Ready, Unknown
from vacancy_agent.core.parse.nvidia import (
    FIELDS,
    REQUIRED,
    FaultKind,
    GpuFault,
    GpuRow,
    NvidiaOutputError,
    first_line,
    parse_gpus,
    unsupported_field,
)
from vacancy_agent.core.parse.pci import normal_pci

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_agent.clock import Clock
    from vacancy_agent.collect.runner import ProbeRunner
    from vacancy_agent.core.facts import Capacity, Reading
    from vacancy_agent.core.parse.nvidia import GpuIdentity
    from vacancy_agent.core.settings import ResourceSettings

_QUERIES = 1 + len(FIELDS) - len(REQUIRED)  # the first, and one more for each field an old driver refuses


class NvidiaProbe:
    """Reads the device of one resource."""

    def __init__(
        self,
        resource: ResourceSettings,
        runner: ProbeRunner,
        clock: Clock,
        *,
        host_memory: Callable[[], Reading[Capacity]],
        is_suspended: Callable[[str], bool],
    ) -> None:
        """`host_memory` serves devices declared unified; `is_suspended` tells of a PCI address."""
        self._resource = resource
        self._runner = runner
        self._clock = clock
        self._host_memory = host_memory
        self._is_suspended = is_suspended
        self._fields: tuple[str, ...] = FIELDS
        self._pci = normal_pci(resource.device or "")
        self.backoff = Backoff(clock)
        self.identity: GpuIdentity | None = None
        """The device, once it was seen."""

    async def sample(self) -> Reading[Capacity]:
        """Take one sample; never raises for what nvidia-smi, its driver or the card does."""
        if self._pci is not None and self._is_suspended(self._pci):
            return Unknown("the GPU is powered down, and asking would wake it")
        wait = self.backoff.remaining()
        if wait > 0:
            missed = self.backoff.missed
            return Unknown(
                f"nvidia-smi missed {missed} deadlines in a row; it is asked again in {wait:.0f} s"
            )
        at = self._clock.now()
        try:
            row = self._chosen(await self._rows())
        except (ChildDeadlineError, ChildUnkillableError) as error:
            self.backoff.miss()
            return Unknown(f"nvidia-smi: {error}")
        except (ChildError, NvidiaOutputError) as error:
            self.backoff.reset()
            return Unknown(str(error))
        self.backoff.reset()
        self._pci = row.identity.pci or self._pci
        self.identity = row.identity
        if isinstance(row, GpuFault):
            return self._faulty(row)
        return Ready(MemoryCapacity(row.free, row.total, row.utilization), at)

    async def _rows(self) -> tuple[GpuRow, ...]:
        for _ in range(_QUERIES):
            run = await self._runner.run(self._command())
            refused = unsupported_field(run.stdout)
            if run.returncode == 0 or refused is None or refused in REQUIRED or refused not in self._fields:
                return _parsed(run, self._fields)
            self._fields = tuple(field for field in self._fields if field != refused)
        raise NvidiaOutputError("nvidia-smi refuses one field after another")

    def _command(self) -> list[str]:
        device = self._resource.device
        only = [] if device is None else ["-i", normal_pci(device) or device]
        return ["nvidia-smi", *only, f"--query-gpu={','.join(self._fields)}", "--format=csv,noheader,nounits"]

    def _chosen(self, rows: tuple[GpuRow, ...]) -> GpuRow:
        device = self._resource.device
        if device is not None:
            rows = tuple(row for row in rows if row.identity.matches(device))
            if not rows:
                raise NvidiaOutputError("nvidia-smi answered for another device than it was asked for")
        if len(rows) > 1:
            raise NvidiaOutputError(f"there are {len(rows)} NVIDIA GPUs: the resource must name its device")
        return rows[0]

    def _faulty(self, fault: GpuFault) -> Reading[Capacity]:
        if fault.kind is FaultKind.NO_MEMORY and self._resource.unified:
            return self._host_memory()
        return Unknown(f"the GPU cannot be read: {fault.why}")


def _parsed(run: Finished, fields: tuple[str, ...]) -> tuple[GpuRow, ...]:
    """Rows of a run that went well; what went wrong is said on standard output."""
    if run.returncode != 0:
        how = f"signal {-run.returncode}" if run.returncode < 0 else f"exit status {run.returncode}"
        raise NvidiaOutputError(f"nvidia-smi failed ({how}): {first_line(run.stdout or run.stderr)}")
    return parse_gpus(run.stdout, fields)
