from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from vacancy_agent.core.contexts import Kind
from vacancy_agent.store import sqlite as module
from vacancy_agent.store.contexts import keep_contexts, read_contexts
from vacancy_agent.store.errors import StoreError
from vacancy_agent.store.schema import MIGRATIONS
from vacancy_agent.store.sqlite import LocalStore

if TYPE_CHECKING:
    from pathlib import Path

LEARNED = [(Kind("d", False, None), 4096), (Kind("d", True, None), 4096), (Kind("d", False, 2048), 8192)]


def test_rows_come_back_in_their_order():
    db = sqlite3.connect(":memory:")
    for step in MIGRATIONS:
        for statement in step:
            db.execute(statement)
    for learned in (LEARNED, LEARNED[::-1], LEARNED[1:]):
        for text, values in keep_contexts(learned):
            db.execute(text, values)
        assert read_contexts(db) == learned
    db.close()


async def test_what_was_learned_outlives_the_agent(tmp_path: Path):
    store = LocalStore(tmp_path / "db")
    assert store.contexts == []
    store.keep_contexts(LEARNED[:1])
    store.keep_contexts(LEARNED)
    await store.flush()
    again = LocalStore(tmp_path / "db")
    assert again.contexts == LEARNED
    again.keep_contexts(LEARNED[1:])
    await again.close()
    await store.close()
    third = LocalStore(tmp_path / "db")
    assert third.contexts == LEARNED[1:]
    await third.close()


async def test_what_could_not_be_written_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = LocalStore(tmp_path / "db")
    store.keep_contexts(LEARNED)
    with monkeypatch.context() as full:
        full.setattr(module, "keep_contexts", lambda _: [("INSERT INTO nowhere VALUES (1)", ())])
        with pytest.raises(StoreError):
            await store.flush()
    await store.close()
    again = LocalStore(tmp_path / "db")
    assert again.contexts == LEARNED
    await again.close()
