from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from vacancy_agent.core.facts import WallTime
from vacancy_agent.core.lending import LocalPause
from vacancy_agent.store import sqlite as module
from vacancy_agent.store.errors import StoreError
from vacancy_agent.store.sqlite import LocalStore, Usage

if TYPE_CHECKING:
    from pathlib import Path


async def test_switches_outlive_the_agent_even_without_a_close(tmp_path: Path):
    path = tmp_path / "db"
    store = LocalStore(path)
    assert (store.switches.pause, store.switches.lending, store.switches.resources) == (None, True, {})
    await store.set_pause(LocalPause(WallTime(5.0)))
    await store.set_lending(enabled=False)
    await store.set_resource("gpu", enabled=False)
    await store.set_resource("ram", enabled=True)

    again = LocalStore(path)  # the first was not closed: as after a kill
    assert again.switches == store.switches
    assert again.switches.pause == LocalPause(WallTime(5.0))
    await again.set_pause(LocalPause(None))
    await again.set_lending(enabled=True)
    third = LocalStore(path)
    assert third.switches.pause == LocalPause(None)
    assert third.switches.lending
    await third.set_pause(None)
    assert LocalStore(path).switches.pause is None
    for opened in (store, again, third):
        await opened.close()


async def test_usage_adds_up_per_day_and_borrower_and_across_starts(tmp_path: Path):
    path = tmp_path / "db"
    store = LocalStore(path)
    store.add_usage("2026-11-30", "a", Usage(1, 2.5, 10))
    store.add_usage("2026-11-30", "a", Usage(1, 0.5, 5))
    store.add_usage("2026-11-30", "b", Usage(1, 1.0, 0))
    store.add_usage("2026-12-01", "a", Usage(7, 7.0, 7))
    await store.flush()
    store.add_usage("2026-11-30", "a", Usage(1, 1.0, 1))
    assert store.usage("2026-11-30") == {"a": Usage(3, 4.0, 16), "b": Usage(1, 1.0, 0)}
    await store.close()
    again = LocalStore(path)
    assert again.usage("2026-11-30") == {"a": Usage(3, 4.0, 16), "b": Usage(1, 1.0, 0)}
    assert again.usage("2026-12-02") == {}
    await again.close()


async def test_a_damaged_file_is_set_aside_and_lending_goes_on(tmp_path: Path):
    path = tmp_path / "db"
    for number in (1, 2):
        path.write_bytes(b"this is no database, and long enough to be looked at" * 100)
        store = LocalStore(path)
        assert store.set_aside == tmp_path / f"db.damaged-{number}"
        assert store.set_aside.read_bytes().startswith(b"this is no")
        await store.set_lending(enabled=False)
        await store.close()


@pytest.mark.parametrize(
    "damage", ["DROP TABLE usage", "ALTER TABLE switch RENAME COLUMN enabled TO xnabled"]
)
async def test_a_file_whose_tables_are_others_is_set_aside_too(tmp_path: Path, damage: str):
    await LocalStore(tmp_path / "db").close()
    with contextlib.closing(sqlite3.connect(tmp_path / "db")) as db:
        db.execute(damage)
    store = LocalStore(tmp_path / "db")
    assert store.set_aside is not None
    await store.close()


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(spots=[(0.2421875, 128)])  # in the text of the schema, which SQLite quotes in its message
@given(spots=st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), min_size=1, max_size=200))
def test_a_file_with_flipped_bytes_never_keeps_the_agent_from_starting(tmp_path: Path, spots):
    path = tmp_path / "db"
    for old in tmp_path.glob("db*"):
        old.unlink()

    async def fill() -> None:
        store = LocalStore(path)
        for number in range(50):
            store.add_usage("2026-11-30", f"b{number}", Usage(1, 1.0, 1))
        await store.close()

    asyncio.run(fill())
    raw = bytearray(path.read_bytes())
    for where, value in spots:
        raw[int(where * len(raw))] = value
    path.write_bytes(raw)

    async def use() -> None:
        store = LocalStore(path)
        await store.set_pause(LocalPause(None))
        await store.close()

    asyncio.run(use())


async def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path):
    path = tmp_path / "db"
    await LocalStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match="newer vacancy"):
        LocalStore(path)
    assert [found.name for found in tmp_path.iterdir()] == ["db"]


async def test_a_place_that_cannot_be_written_is_said(tmp_path: Path):
    with pytest.raises(StoreError, match="cannot open"):
        LocalStore(tmp_path / "missing" / "db")


async def test_what_cannot_be_written_is_kept_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = LocalStore(tmp_path / "db")
    other = sqlite3.connect(tmp_path / "db", isolation_level=None)
    store._db.execute("PRAGMA busy_timeout = 10")
    other.execute("BEGIN IMMEDIATE")  # somebody else writes: ours fail
    store.add_usage("d", "a", Usage(1, 1.0, 1))
    with pytest.raises(StoreError, match="locked"):
        await store.set_lending(enabled=False)
    assert store.switches.lending
    monkeypatch.setattr(module, "FLUSH_S", 0.01)
    failed = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(store.keep(lambda _: failed.set()))
        await failed.wait()
        other.execute("ROLLBACK")
        task.cancel()
    other.close()
    await store.close()
    again = LocalStore(tmp_path / "db")
    assert again.usage("d") == {"a": Usage(1, 1.0, 1)}
    await again.close()
