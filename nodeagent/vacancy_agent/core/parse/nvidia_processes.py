"""Which processes use an NVIDIA GPU, from `nvidia-smi pmon -c 1`.

In a container without the host's process ids it is empty although the GPU is busy; only the caller can know.
Rejected: `--query-compute-apps`, which lists compute contexts only, so that a game is not in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from vacancy_agent.core.facts import Percent
from vacancy_agent.core.parse.nvidia import NvidiaOutputError

_NUMBER = re.compile(r"([0-9]{1,9})(?: (?:MiB|%))?", re.ASCII)
_NEEDED = ("gpu", "pid", "sm")


@dataclass(frozen=True, slots=True)
class PmonRow:
    """A process on a GPU in one `pmon` sample. `sm` None: it did not run in the sample period."""

    gpu_index: int
    """Valid for the one run that printed it, no longer: join it with the UUID at once."""
    pid: int
    sm: Percent | None


def parse_pmon(output: bytes) -> tuple[PmonRow, ...]:
    """Read `pmon -c 1` of a run that exited with 0; columns are found by name, as drivers differ in them.

    Raises:
        NvidiaOutputError: no header with the columns needed, or a line that is no row.
    """
    lines = output.decode("utf-8", "replace").split("\n")
    headers = [line.lstrip("#").split() for line in lines if line.startswith("#")]
    if not headers or not all(column in headers[0] for column in _NEEDED):
        raise NvidiaOutputError("nvidia-smi pmon printed no header with gpu, pid and sm")
    rows = (_pmon_row(headers[0], line) for line in lines if line.strip() and not line.startswith("#"))
    return tuple(row for row in rows if row is not None)


def _pmon_row(header: list[str], line: str) -> PmonRow | None:
    cells = dict(zip(header, line.split(), strict=False))
    gpu, pid, sm = (cells.get(column, "") for column in _NEEDED)
    if pid == "-":
        return None  # a device without a process
    index, number, load = _number(gpu), _number(pid), _number(sm)
    unread = load is None and sm != "-"  # a dash is a process that did not run; anything else is no reading
    if index is None or number is None or unread:
        raise NvidiaOutputError(f"nvidia-smi pmon printed a line that is no row: {line.strip()[:80]}")
    return PmonRow(index, number, None if load is None else Percent(float(load)))


def _number(cell: str) -> int | None:
    match = _NUMBER.fullmatch(cell)
    return int(match[1]) if match else None
