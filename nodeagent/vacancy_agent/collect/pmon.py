"""Whose load an NVIDIA GPU has, through `nvidia-smi pmon`.

Invariant: a figure is of the device that was asked for. pmon names devices by an index that means nothing
outside of its one run, so it is asked for a single UUID and must answer for a single index. Rejected:
`--query-compute-apps`, in which a game does not appear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.collect.backoff import Backoff
from vacancy_agent.collect.child import ChildDeadlineError, ChildError, ChildUnkillableError, Finished
from vacancy_agent.core.owner_load import Attributed, Failed, GpuUser, NotPossible
from vacancy_agent.core.parse.nvidia import NvidiaOutputError, first_line
from vacancy_agent.core.parse.nvidia_processes import parse_pmon
from vacancy_agent.platform.linux.ancestry import Ancestry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vacancy_agent.clock import Clock
    from vacancy_agent.collect.runner import ProbeRunner
    from vacancy_agent.core.facts import Instant, ProcessIdentity
    from vacancy_agent.core.owner_load import LoadSample, Total
    from vacancy_agent.core.parse.nvidia import GpuIdentity
    from vacancy_agent.core.parse.nvidia_processes import PmonRow

_REFUSED = b"not supported"


class PmonProbe:
    """Reads the processes of one device."""

    def __init__(
        self,
        runner: ProbeRunner,
        clock: Clock,
        *,
        identity: Callable[[], GpuIdentity | None],
        total: Callable[[], Total | None],
        served: Mapping[str, ProcessIdentity],
        is_suspended: Callable[[str], bool],
        may_use_total: bool,
    ) -> None:
        """What it needs of others.

        Args:
            runner: its own: a pmon that hangs must not keep the capacity from being read.
            clock: for the sample's time.
            identity: the device, once the capacity probe has seen it.
            total: the load of the whole device as read last.
            served: by upstream, the process that serves it; kept up to date by its owner.
            is_suspended: tells of a PCI address.
            may_use_total: where processes cannot be told apart, give the total (`mode: fixed`).
        """
        self._runner = runner
        self._clock = clock
        self._identity = identity
        self._total = total
        self._served = served
        self._is_suspended = is_suspended
        self._may_use_total = may_use_total
        self._backoff = Backoff(clock)

    async def sample(self) -> LoadSample:
        """Take one sample; never raises for what nvidia-smi, its driver or the card does."""
        device = self._identity()
        if device is None:
            return Failed("the GPU has not been identified yet")
        at = self._clock.now()
        if device.pci is not None and self._is_suspended(device.pci):
            return Attributed(device.uuid, (), at)  # what is powered down does nothing; asking would wake it
        if self._backoff.remaining() > 0:
            return Failed(f"nvidia-smi pmon missed {self._backoff.missed} deadlines in a row")
        try:
            run = await self._runner.run(["nvidia-smi", "pmon", "-i", device.uuid, "-c", "1"])
            return self._read(run, device.uuid, at)
        except (ChildDeadlineError, ChildUnkillableError) as error:
            self._backoff.miss()
            return Failed(f"nvidia-smi pmon: {error}")
        except (ChildError, NvidiaOutputError) as error:
            self._backoff.reset()
            return Failed(str(error))

    def woke(self) -> None:
        """What hung before the machine slept may not any more."""
        self._backoff.reset()

    def _read(self, run: Finished, device: str, at: Instant) -> LoadSample:
        self._backoff.reset()
        if run.returncode != 0 and _REFUSED in (run.stdout + run.stderr).lower():
            total = self._total() if self._may_use_total else None
            said = first_line(run.stdout or run.stderr)
            return total or NotPossible(f"nvidia-smi cannot tell the GPU's processes apart: {said}")
        ancestry = Ancestry(self._served)
        users = tuple(_user(row, ancestry) for row in _rows(run))
        return Attributed(device, users, at, self._total())


def _rows(run: Finished) -> tuple[PmonRow, ...]:
    if run.returncode != 0:
        raise NvidiaOutputError(f"nvidia-smi pmon failed: {first_line(run.stdout or run.stderr)}")
    rows = parse_pmon(run.stdout)
    if len({row.gpu_index for row in rows}) > 1:
        raise NvidiaOutputError("nvidia-smi pmon answered for more devices than it was asked for")
    return rows


def _user(row: PmonRow, ancestry: Ancestry) -> GpuUser:
    return GpuUser({} if row.sm is None else {"sm": row.sm}, ancestry.upstreams_of([row.pid]))
