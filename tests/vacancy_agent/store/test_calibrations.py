from __future__ import annotations

import sqlite3

import pytest

from vacancy_agent.core.facts import Percent, Seconds
from vacancy_agent.core.learned import BINS, Calibration
from vacancy_agent.store.calibrations import keep_calibration, read_calibrations
from vacancy_agent.store.schema import MIGRATIONS

GPU = "GPU-0a11c0de-0000-4000-8000-000000000000"


@pytest.fixture
def db():
    with sqlite3.connect(":memory:") as open_db:
        for step in MIGRATIONS:
            for statement in step:
                open_db.execute(statement)
    yield open_db
    open_db.close()


def test_what_was_learned_comes_back_to_the_last_bit(db: sqlite3.Connection) -> None:
    one = Calibration(GPU, tuple(0.1 * number for number in range(BINS)), Seconds(1234.5), Percent(17.000001))
    db.execute(*keep_calibration("gpu", one))
    assert read_calibrations(db) == {"gpu": one}


def test_the_newest_stands(db: sqlite3.Connection) -> None:
    for threshold in (10.0, 22.0):
        one = Calibration(GPU, (0.0,) * BINS, Seconds(1.0), Percent(threshold))
        db.execute(*keep_calibration("gpu", one))
    assert read_calibrations(db)["gpu"].threshold == 22.0


@pytest.mark.parametrize("blob", [b"", b"x", b"\x00" * 8 * (BINS - 1), b"\xff" * 8 * BINS])
def test_a_damaged_row_fits_no_device(db: sqlite3.Connection, blob: bytes) -> None:
    row = ("gpu", GPU, 1, 100.0, 12.0, blob)
    db.execute("INSERT INTO calibration VALUES (?, ?, ?, ?, ?, ?)", row)
    assert not read_calibrations(db)["gpu"].fits(GPU)
