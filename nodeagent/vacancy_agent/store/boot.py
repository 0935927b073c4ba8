"""Which boot of the machine this is: holds of local servers end with it."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil

from vacancy_agent.store.errors import StoreError

LINUX_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_GRAIN_S = 60


def boot_id() -> str:
    """Text of at most 44 bytes that changes with every boot and with nothing else.

    Where the kernel keeps no such number it is the time of the boot, to the minute: a clock that was set by
    more between two starts of the agent looks like a reboot.

    Raises:
        StoreError: it cannot be read.
    """
    if sys.platform == "linux":
        return _linux_boot_id()
    else:  # noqa: RET505 - mypy leaves out a branch of another platform, not what follows one
        return f"booted-at-{round(psutil.boot_time() / _GRAIN_S)}"


def _linux_boot_id() -> str:
    try:
        return LINUX_BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read {LINUX_BOOT_ID}: {error}") from error
