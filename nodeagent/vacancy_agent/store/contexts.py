"""Learned contexts as rows of the agent's SQLite file. An unset num_ctx is written as 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.core.contexts import Kind

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

Statement = tuple[str, tuple[object, ...]]


def read_contexts(db: sqlite3.Connection) -> list[tuple[Kind, int]]:
    """Every row, oldest first."""
    rows = db.execute("SELECT digest, v1, num_ctx, context FROM context ORDER BY rowid")
    return [(Kind(digest, bool(v1), num_ctx or None), context) for digest, v1, num_ctx, context in rows]


def keep_contexts(contexts: Iterable[tuple[Kind, int]]) -> list[Statement]:
    """The statements that leave exactly these, in their order."""
    statements: list[Statement] = [("DELETE FROM context", ())]
    for kind, context in contexts:
        values = (kind.digest, int(kind.v1), kind.num_ctx or 0, context)
        statements.append(("INSERT INTO context (digest, v1, num_ctx, context) VALUES (?, ?, ?, ?)", values))
    return statements
