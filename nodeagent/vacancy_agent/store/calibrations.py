"""Learned thresholds as rows of the agent's SQLite file. Bins are little-endian doubles, in their order."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Percent, Seconds
from vacancy_agent.core.learned import Calibration

if TYPE_CHECKING:
    import sqlite3

_BIN = 8


def read_calibrations(db: sqlite3.Connection) -> dict[str, Calibration]:
    """Every row, by resource; whether it fits its device is for whoever knows the device."""
    rows = db.execute("SELECT resource, device, version, observed, threshold, bins FROM calibration")
    return {
        resource: Calibration(device, _unpacked(bins), Seconds(observed), Percent(threshold), version)
        for resource, device, version, observed, threshold, bins in rows
    }


def keep_calibration(resource: str, one: Calibration) -> tuple[str, tuple[object, ...]]:
    """The statement that writes one, and its values."""
    bins = struct.pack(f"<{len(one.bins)}d", *one.bins)
    return (
        "INSERT OR REPLACE INTO calibration VALUES (?, ?, ?, ?, ?, ?)",
        (resource, one.device, one.version, one.observed, one.threshold, bins),
    )


def _unpacked(bins: bytes) -> tuple[float, ...]:
    """The numbers in a blob; of one that was cut off, none."""
    if len(bins) % _BIN:
        return ()
    return struct.unpack(f"<{len(bins) // _BIN}d", bins)
