"""Recorded output of nvidia-smi with its right reading: `tests/fixtures/nvidia-smi/index.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "fixtures" / "nvidia-smi"


@dataclass(frozen=True)
class Sample:
    """One run: what it printed, its exit status, and what a correct reader makes of it."""

    name: str
    kind: str
    fields: tuple[str, ...]
    returncode: int
    right: Any
    output: bytes


def samples(kind: str) -> list[Sample]:
    """Every recorded sample of a kind (`query-gpu`, `pmon`)."""
    index = json.loads((FOLDER / "index.json").read_text())
    return [
        Sample(
            entry["file"].removesuffix(".txt"),
            kind,
            tuple(entry["fields"]),
            entry["returncode"],
            entry["right"],
            (FOLDER / entry["file"]).read_bytes(),
        )
        for entry in index
        if entry["kind"] == kind
    ]
