"""Which processes use an NVIDIA GPU, from the two listings of nvidia-smi.

`--query-compute-apps` lists compute contexts only: a game is not in it. `pmon -c 1` has graphics too. In a
container without the host's process ids both are empty although the GPU is busy; only the caller can know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from vacancy_agent.core.facts import MiB, Percent
from vacancy_agent.core.parse.nvidia import NvidiaOutputError

COMPUTE_FIELDS = ("gpu_uuid", "pid", "used_gpu_memory", "process_name")
"""What is asked of `--query-compute-apps`; the process name is free text."""

_NUMBER = re.compile(r"([0-9]{1,9})(?: (?:MiB|%))?", re.ASCII)
_NEEDED = ("gpu", "pid", "sm")


@dataclass(frozen=True, slots=True)
class ComputeApp:
    """A process with a compute context. On Windows and WSL its memory is never reported: None."""

    gpu_uuid: str
    pid: int
    used: MiB | None


@dataclass(frozen=True, slots=True)
class PmonRow:
    """A process on a GPU in one `pmon` sample. `sm` None: it did not run in the sample period."""

    gpu_index: int
    """Valid for the one run that printed it, no longer: join it with the UUID at once."""
    pid: int
    sm: Percent | None


def parse_compute_apps(output: bytes) -> tuple[ComputeApp, ...]:
    """Read `--query-compute-apps` of a run that exited with 0; no output means no process.

    Raises:
        NvidiaOutputError: a line that is no row.
    """
    text = output.decode("utf-8", "replace")
    return tuple(_compute_app(line) for line in text.split("\n") if line.strip())


def _compute_app(line: str) -> ComputeApp:
    cells = [cell.strip() for cell in line.split(",", len(COMPUTE_FIELDS) - 1)]
    pid = _number(cells[1]) if len(cells) == len(COMPUTE_FIELDS) else None
    if pid is None:
        raise NvidiaOutputError(f"nvidia-smi printed a line that is no process: {line.strip()[:80]}")
    used = _number(cells[2])
    return ComputeApp(cells[0], pid, None if used is None else MiB(used))


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
    index, number = _number(gpu), _number(pid)
    if index is None or number is None:
        raise NvidiaOutputError(f"nvidia-smi pmon printed a line that is no row: {line.strip()[:80]}")
    load = _number(sm)
    return PmonRow(index, number, None if load is None else Percent(float(load)))


def _number(cell: str) -> int | None:
    match = _NUMBER.fullmatch(cell)
    return int(match[1]) if match else None
