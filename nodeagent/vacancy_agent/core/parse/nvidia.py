"""What `nvidia-smi --query-gpu=... --format=csv,noheader,nounits` prints, as one verdict per device.

Invariant: no number comes out of here that nvidia-smi did not print as that number. A cell it could not fill
makes its device unreadable (memory) or the figure absent (utilisation), never 0: a zero for a lost card
would read as an idle one. Devices are known by UUID and PCI address; the index, which changes with the next
boot, is not even asked for. Rejected: the XML output, which is slower and just as unstable between drivers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import MiB, Percent
from vacancy_agent.core.parse.pci import normal_pci

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FIELDS = (
    "uuid",
    "pci.bus_id",
    "memory.total",
    "memory.used",
    "memory.free",
    "utilization.gpu",
    "mig.mode.current",
    "driver_version",
    "name",
)
"""What is asked for. Free text stands last, because the output is not quoted."""
REQUIRED = frozenset({"uuid", "memory.total", "memory.free"})

_FREE_TEXT = "name"
_FATAL = {"gpu is lost": "lost", "gpu requires reset": "reset", "err!": "reset"}
_MEMORY = re.compile(r"([0-9]{1,9})(?: MiB)?", re.ASCII)
_LOAD = re.compile(r"([0-9]{1,3})(?: %)?", re.ASCII)
_INVALID_FIELD = re.compile(r'Field "([^"]+)" is not a valid field to query')


class NvidiaOutputError(Exception):
    """The output as a whole cannot be trusted: every device of the sample is unknown."""


class FaultKind(StrEnum):
    """Why one device has no reading although its row could be told apart."""

    LOST = "lost"
    """It fell off the bus."""
    RESET = "reset"
    """It needs a reset."""
    NO_MEMORY = "no-memory"
    """The driver does not report its memory (unified memory, missing permission, an error in that cell)."""
    MIG = "mig"
    """It is partitioned: figures of the whole card say nothing about a partition."""


@dataclass(frozen=True, slots=True)
class GpuIdentity:
    """What stays the same about a device from boot to boot."""

    uuid: str
    pci: str | None = None

    def matches(self, device: str) -> bool:
        """Whether this is the device that a configuration names by UUID or PCI address."""
        pci = normal_pci(device)
        if pci is not None:
            return pci == self.pci
        return device.strip().lower() == self.uuid.lower()


@dataclass(frozen=True, slots=True)
class GpuReading:
    """A device that can be read."""

    identity: GpuIdentity
    free: MiB
    total: MiB
    utilization: Percent | None
    driver: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class GpuFault:
    """A device that cannot."""

    identity: GpuIdentity
    kind: FaultKind
    why: str


GpuRow = GpuReading | GpuFault


def parse_gpus(output: bytes, fields: Sequence[str]) -> tuple[GpuRow, ...]:
    """Read the rows of a run that exited with 0 and was asked for `fields`, in that order.

    Raises:
        NvidiaOutputError: no row at all, a row with too few or too many cells, a missing UUID, or a device
            that appears twice.
    """
    rows = tuple(_row(cells) for cells in _cells(output, fields))
    if not rows:
        raise NvidiaOutputError("nvidia-smi printed no device")
    addresses = [row.identity.pci for row in rows if row.identity.pci is not None]
    if len({row.identity.uuid for row in rows}) != len(rows) or len(set(addresses)) != len(addresses):
        raise NvidiaOutputError("nvidia-smi printed the same device twice")
    return rows


def unsupported_field(output: bytes) -> str | None:
    """The field that this driver's nvidia-smi refused to query, when that is what it said."""
    match = _INVALID_FIELD.search(output.decode("utf-8", "replace"))
    return match[1] if match else None


def first_line(output: bytes) -> str:
    """What nvidia-smi had to say, short enough for a status line."""
    text = output.decode("utf-8", "replace").strip()
    return text.splitlines()[0][:160] if text else "it printed nothing"


def _cells(output: bytes, fields: Sequence[str]) -> list[dict[str, str]]:
    # Not splitlines: it also breaks at characters that a garbled name may contain.
    rows = []
    for line in output.decode("utf-8", "replace").split("\n"):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(",", len(fields) - 1)]
        if cells[0].lower() == fields[0]:
            continue  # the header, although it was told to leave it out
        if len(cells) != len(fields) or (fields[-1] != _FREE_TEXT and "," in cells[-1]):
            raise NvidiaOutputError(f"nvidia-smi printed a line that is no row: {line.strip()[:80]}")
        rows.append(dict(zip(fields, cells, strict=True)))
    return rows


def _row(cells: Mapping[str, str]) -> GpuRow:
    identity = _identity(cells)
    # 1. One fatal token anywhere: nothing in the row is true any more.
    for cell in cells.values():
        fatal = _FATAL.get(_bare(cell).lower())
        if fatal is not None:
            return GpuFault(identity, FaultKind(fatal), f"the driver says: {_bare(cell)}")
    # 2. A partitioned card.
    if _bare(cells.get("mig.mode.current", "")).lower() == "enabled":
        return GpuFault(identity, FaultKind.MIG, "MIG is enabled, which is not supported yet")
    # 3. Memory, as printed: free is never total minus used, which forgets what the driver keeps for itself.
    free, total = _number(_MEMORY, cells["memory.free"]), _number(_MEMORY, cells["memory.total"])
    if free is None or total is None or free > total or total == 0:
        why = f"its memory reads {cells['memory.free']} free of {cells['memory.total']}"
        return GpuFault(identity, FaultKind.NO_MEMORY, why)
    return GpuReading(
        identity,
        MiB(free),
        MiB(total),
        _utilization(cells),
        _text(cells, "driver_version"),
        _text(cells, "name"),
    )


def _identity(cells: Mapping[str, str]) -> GpuIdentity:
    uuid = cells["uuid"]
    if not uuid.startswith("GPU-"):
        raise NvidiaOutputError(f"nvidia-smi printed a row without a UUID: {uuid[:80]}")
    return GpuIdentity(uuid, normal_pci(cells.get("pci.bus_id", "")))


def _utilization(cells: Mapping[str, str]) -> Percent | None:
    number = _number(_LOAD, cells.get("utilization.gpu", ""))
    return Percent(float(number)) if number is not None and number <= 100 else None  # noqa: PLR2004 - percent


def _number(pattern: re.Pattern[str], cell: str) -> int | None:
    match = pattern.fullmatch(cell)
    return int(match[1]) if match else None


def _bare(cell: str) -> str:
    return cell.removeprefix("[").removesuffix("]")


def _text(cells: Mapping[str, str], field: str) -> str | None:
    text = cells.get(field, "")
    return text if text and not text.startswith("[") else None
