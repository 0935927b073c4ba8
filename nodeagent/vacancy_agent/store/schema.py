"""Tables of the agent's SQLite file, as steps from each version to the next."""

from __future__ import annotations

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE pause (one INTEGER PRIMARY KEY CHECK (one = 1), until REAL) STRICT",
        "CREATE TABLE switch (name TEXT PRIMARY KEY, enabled INTEGER NOT NULL) STRICT, WITHOUT ROWID",
        "CREATE TABLE usage (day TEXT NOT NULL, borrower TEXT NOT NULL, requests INTEGER NOT NULL,"
        " seconds REAL NOT NULL, tokens INTEGER NOT NULL, PRIMARY KEY (day, borrower)) STRICT, WITHOUT ROWID",
    ),
    (
        "CREATE TABLE calibration (resource TEXT PRIMARY KEY, device TEXT NOT NULL, version INTEGER NOT NULL,"
        " observed REAL NOT NULL, threshold REAL NOT NULL, bins BLOB NOT NULL) STRICT, WITHOUT ROWID",
    ),
    (
        "CREATE TABLE context (digest TEXT NOT NULL, v1 INTEGER NOT NULL, num_ctx INTEGER NOT NULL,"
        " context INTEGER NOT NULL, UNIQUE (digest, v1, num_ctx)) STRICT",
    ),
)
"""Step n leads from `user_version` n to n + 1. Append; never edit a step that was released.

STRICT, so that the check at start meets values of a wrong type.
"""
