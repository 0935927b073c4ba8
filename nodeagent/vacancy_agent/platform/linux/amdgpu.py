"""One AMD GPU in sysfs: its memory, its load, and whether it is asleep.

All files are read, none written, and none at all of a device that is powered down: to read some of them
would wake it. Sizes are bytes. These calls may block on a card that hangs: run them beside the loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vacancy_agent.core.facts import MiB, Percent
from vacancy_agent.core.parse.pci import normal_pci
from vacancy_agent.platform.linux.gpu_power import is_suspended

DEVICES = Path("/sys/bus/pci/devices")
_VENDOR = "0x1002"
_TOTAL = "mem_info_vram_total"
_MIB = 1 << 20
_FULL = 100


class AmdGpuError(Exception):
    """The device cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Pool:
    """One kind of memory, as the driver accounts for it."""

    total: MiB
    free: MiB


@dataclass(frozen=True, slots=True)
class AmdMemory:
    """Memory of the card itself (of an APU: what the firmware carved out), and of the host for its use."""

    vram: Pool
    gtt: Pool


@dataclass(frozen=True, slots=True)
class AmdGpu:
    """A device by its PCI address."""

    pci: str
    folder: Path

    @classmethod
    def find(cls, device: str | None, devices: Path = DEVICES) -> AmdGpu:
        """The named device, or the only one.

        Args:
            device: PCI address in any spelling; None: the machine has but one.
            devices: sysfs's PCI devices.

        Raises:
            AmdGpuError: it is not there, or there are several.
        """
        if device is not None:
            pci = normal_pci(device)
            if pci is None:
                raise AmdGpuError(f"an AMD GPU is named by its PCI address, not by {device!r}")
            if not _is_amd(devices / pci):
                raise AmdGpuError(f"there is no AMD GPU at {pci}, or its driver is not amdgpu")
            return cls(pci, devices / pci)
        try:
            found = sorted(path.name for path in devices.iterdir() if _is_amd(path))
        except OSError as error:
            raise AmdGpuError(f"PCI devices cannot be listed: {error.strerror}") from error
        if len(found) != 1:
            many = f"{len(found)} AMD GPUs: the resource must name its device" if found else "no AMD GPU"
            raise AmdGpuError(f"there {'are' if found else 'is'} {many}")
        return cls(found[0], devices / found[0])

    @property
    def asleep(self) -> bool:
        """The kernel has powered it down."""
        return is_suspended(self.pci, self.folder.parent)

    def memory(self) -> AmdMemory:
        """Both kinds of memory now.

        Raises:
            AmdGpuError: a file is missing or holds no number.
        """
        return AmdMemory(self._pool("vram"), self._pool("gtt"))

    def load(self) -> Percent | None:
        """Load of the whole device; None where the driver does not tell."""
        try:
            percent = int((self.folder / "gpu_busy_percent").read_text())
        except (OSError, ValueError):
            return None
        return Percent(float(percent)) if 0 <= percent <= _FULL else None

    def _pool(self, kind: str) -> Pool:
        total, used = self._bytes(f"mem_info_{kind}_total"), self._bytes(f"mem_info_{kind}_used")
        if total <= 0 or not 0 <= used <= total:
            raise AmdGpuError(f"its {kind} reads {used} used of {total} bytes")
        # The driver tells no free figure: what it has handed out is all there is to go by.
        return Pool(MiB(total // _MIB), MiB((total - used) // _MIB))

    def _bytes(self, file: str) -> int:
        try:
            return int((self.folder / file).read_text())
        except (OSError, ValueError) as error:
            raise AmdGpuError(f"{file} of {self.pci} cannot be read") from error


def _is_amd(folder: Path) -> bool:
    try:
        vendor = (folder / "vendor").read_text().strip()
    except OSError:
        return False
    return vendor == _VENDOR and (folder / _TOTAL).exists()
