"""Whether a PCI device is powered down, without waking it."""

from __future__ import annotations

from pathlib import Path

SYSFS = Path("/sys/bus/pci/devices")


def is_suspended(pci: str, sysfs: Path = SYSFS) -> bool:
    """Whether the kernel has suspended the device `pci` (`0000:01:00.0`); False where it cannot be told.

    Reading `power/runtime_status` leaves the device asleep; nvidia-smi would wake it, for seconds and watts.
    """
    try:
        return (sysfs / pci / "power" / "runtime_status").read_text().strip() == "suspended"
    except OSError:
        return False
