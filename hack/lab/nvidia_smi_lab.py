"""A stand-in nvidia-smi for PATH, whose devices, faults and misbehaviour can be changed while it is in use.

smi = NvidiaSmiLab(folder)                  # puts an executable `nvidia-smi` into the folder
smi.devices(device("GPU-1", free=20_000))
smi.processes(process("GPU-1", 4711, sm=80)) # what `pmon` lists; until then it is not supported
smi.mode("hang")                            # ok slow:SECONDS hang ignore-term orphan orphan-hang flood
os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("nvidia_smi_program.py")


def device(uuid: str, *, total: int = 24564, free: int = 23000, **fields: object) -> dict[str, object]:
    """One card, as nvidia-smi names its fields (a dot written as two underscores)."""
    card: dict[str, object] = {
        "uuid": uuid,
        "pci.bus_id": "00000000:01:00.0",
        "memory.total": total,
        "memory.used": total - free,
        "memory.free": free,
        "utilization.gpu": 0,
        "mig.mode.current": "[N/A]",
        "driver_version": "570.86.10",
        "name": "NVIDIA GeForce RTX 4090",
    }
    card.update({field.replace("__", "."): value for field, value in fields.items()})
    return card


def process(
    uuid: str, pid: int, *, sm: int | None = 0, kind: str = "G", name: str = "game"
) -> dict[str, object]:
    """One process on a card; `sm` None: it did not run in the sample period."""
    return {"uuid": uuid, "pid": pid, "sm": "-" if sm is None else sm, "type": kind, "name": name}


class NvidiaSmiLab:
    """The program and the state it answers from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        program = folder / "nvidia-smi"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{PROGRAM}" "{folder}" "$@"\n')
        program.chmod(0o755)
        self._state: dict[str, Any] = {
            "mode": "ok",
            "pmon_mode": "ok",
            "devices": [],
            "processes": None,
            "unsupported": [],
        }
        self._write()

    def devices(self, *cards: dict[str, object]) -> None:
        self._state["devices"] = list(cards)
        self._write()

    def mode(self, mode: str) -> None:
        self._state["mode"] = mode
        self._write()

    def processes(self, *running: dict[str, object]) -> None:
        """What `pmon` lists from now on; nothing: no process uses a card."""
        self._state["processes"] = list(running)
        self._write()

    def pmon_not_supported(self) -> None:
        """`pmon` cannot tell, as at the start."""
        self._state["processes"] = None
        self._write()

    def pmon_mode(self, mode: str) -> None:
        """As `mode`, for `pmon` alone; the other way round `mode` leaves `pmon` as it is."""
        self._state["pmon_mode"] = mode
        self._write()

    def unsupported(self, *fields: str) -> None:
        """Fields that this driver refuses to query."""
        self._state["unsupported"] = list(fields)
        self._write()

    def replay(self, output: Path, returncode: int) -> None:
        """Print a recorded answer from now on."""
        self._state.update(file=str(output), returncode=returncode)
        self._write()

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of every query so far."""
        return [call for call in self._all_calls() if call[:1] != ["pmon"]]

    @property
    def pmon_calls(self) -> list[list[str]]:
        """The arguments of every `pmon` so far."""
        return [call for call in self._all_calls() if call[:1] == ["pmon"]]

    def _all_calls(self) -> list[list[str]]:
        calls = self.folder / "calls"
        return [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []

    def _write(self) -> None:
        fresh = self.folder / "state.new"
        fresh.write_text(json.dumps(self._state))
        fresh.replace(self.folder / "state.json")
