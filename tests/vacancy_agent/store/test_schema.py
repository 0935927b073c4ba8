from __future__ import annotations

import sqlite3

from vacancy_agent.store.schema import MIGRATIONS


def test_every_step_applies_in_order():
    db = sqlite3.connect(":memory:")
    for step in MIGRATIONS:
        for statement in step:
            db.execute(statement)
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    db.close()
    assert tables == {"pause", "switch", "usage", "calibration", "context"}
