"""What may take milliseconds: the owner's switches at the machine, and usage per borrower and day.

Invariant: no call of the event loop waits for the disk. Reads come from memory (the file is read once, at
start); writes go through one thread, in order. A commit waits for the disk, which takes tens of milliseconds
on a bad day, and in that time no stream would be cut; hence a thread, and not a short write on the loop.

A switch is on the disk when its call returns. Usage is written every `FLUSH_S` and at the end: a kill loses
at most that much of it. A file that SQLite cannot read is renamed, and the agent starts with an empty one:
lending does not depend on it, but a pause that was in it is lost, so the message says that.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import WallTime
from vacancy_agent.core.lending import LocalPause
from vacancy_agent.store.calibrations import keep_calibration, read_calibrations
from vacancy_agent.store.contexts import keep_contexts, read_contexts
from vacancy_agent.store.errors import StoreError
from vacancy_agent.store.schema import MIGRATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from vacancy_agent.core.contexts import Kind
    from vacancy_agent.core.learned import Calibration

FLUSH_S = 10.0
KEEP_DAYS = 400
LENDING = "lending"
_RESOURCE = "resource/"
_TABLES = (
    "until FROM pause",
    "name, enabled FROM switch",
    "day, borrower, requests, seconds, tokens FROM usage",
    "resource, device, version, observed, threshold, bins FROM calibration",
    "digest, v1, num_ctx, context FROM context",
)
_SIDE_FILES = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class Usage:
    """What one borrower used."""

    requests: int = 0
    seconds: float = 0.0
    tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.requests + other.requests, self.seconds + other.seconds, self.tokens + other.tokens)


@dataclass(slots=True)
class LocalSwitches:
    """The owner's switches, as they are on the disk."""

    pause: LocalPause | None = None
    lending: bool = True
    resources: dict[str, bool] = field(default_factory=dict)
    """Resources that were switched; one that is not named follows its specification."""


class LocalStore:
    """One agent's SQLite file. Use it on one event loop; `keep` is its background task."""

    def __init__(self, path: Path) -> None:
        """Open or make the file, and read what it says.

        Raises:
            StoreError: it can neither be used nor set aside (full disk, no permission, newer version).
        """
        self._path = path
        self.set_aside: Path | None = None
        """Where a file that could not be read went, for the start's message."""
        self._db = self._open()
        self.switches = _read_switches(self._db)
        self._usage = _read_usage(self._db)
        self.calibrations = read_calibrations(self._db)
        """What was learned of each resource's GPU, as it is on the disk."""
        self.contexts = read_contexts(self._db)
        """What was learned of models' contexts, as it was on the disk at the start."""
        self._new_contexts: list[tuple[Kind, int]] | None = None
        self._pending: dict[tuple[str, str], Usage] = {}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sqlite")

    async def set_pause(self, pause: LocalPause | None) -> None:
        """Pause lending at this machine, or end the pause; on the disk when this returns.

        Raises:
            StoreError: it could not be written; the switch is as before.
        """
        statements: list[tuple[str, tuple[object, ...]]] = [("DELETE FROM pause", ())]
        if pause is not None:
            statements.append(("INSERT INTO pause (one, until) VALUES (1, ?)", (pause.until,)))
        await self._write(statements)
        self.switches.pause = pause

    async def set_lending(self, enabled: bool) -> None:
        """Set the global switch; on the disk when this returns.

        Raises:
            StoreError: it could not be written; the switch is as before.
        """
        await self._write([_switch(LENDING, enabled)])
        self.switches.lending = enabled

    async def set_resource(self, resource: str, enabled: bool) -> None:
        """Set one resource's switch; on the disk when this returns.

        Raises:
            StoreError: it could not be written; the switch is as before.
        """
        await self._write([_switch(_RESOURCE + resource, enabled)])
        self.switches.resources[resource] = enabled

    async def set_calibrations(self, learned: Mapping[str, Calibration]) -> None:
        """Keep what was learned, by resource; on the disk when this returns. Others stay as they are.

        Raises:
            StoreError: it could not be written.
        """
        await self._write([keep_calibration(resource, one) for resource, one in learned.items()])
        self.calibrations.update(learned)

    def add_usage(self, day: str, borrower: str, usage: Usage) -> None:
        """Count a finished job; in memory, written by `keep`. `day` is an ISO date, local to the machine."""
        key = (day, borrower)
        self._usage[key] = self._usage.get(key, Usage()) + usage
        self._pending[key] = self._pending.get(key, Usage()) + usage

    def usage(self, day: str) -> Mapping[str, Usage]:
        """Usage of each borrower on that day."""
        return {borrower: usage for (at, borrower), usage in self._usage.items() if at == day}

    def keep_contexts(self, learned: Iterable[tuple[Kind, int]]) -> None:
        """These are all the learned contexts now; in memory, written by `keep`."""
        self._new_contexts = list(learned)

    async def flush(self) -> None:
        """Write the usage counted so far, and the contexts learned since.

        Raises:
            StoreError: it could not be written; it is kept, and tried again at the next call.
        """
        pending, self._pending = self._pending, {}
        try:
            await self._write([_count(day, borrower, usage) for (day, borrower), usage in pending.items()])
        except StoreError:
            for key, usage in pending.items():
                self._pending[key] = self._pending.get(key, Usage()) + usage
            raise
        learned, self._new_contexts = self._new_contexts, None
        if learned is not None:
            try:
                await self._write(keep_contexts(learned))
            except StoreError:
                self._new_contexts = self._new_contexts or learned
                raise

    async def keep(self, failed: Callable[[StoreError], None]) -> None:
        """Write usage every `FLUSH_S`, until cancelled. `failed` is told of a write that did not succeed."""
        while True:
            await asyncio.sleep(FLUSH_S)
            try:
                await self.flush()
            except StoreError as error:
                failed(error)

    async def close(self) -> None:
        """Write what is left and close the file."""
        with contextlib.suppress(StoreError):
            await self.flush()
        await self._in_thread(self._db.close)
        self._thread.shutdown()

    async def _write(self, statements: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        if statements:
            await self._in_thread(lambda: self._commit(statements))

    async def _in_thread(self, work: Callable[[], None]) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            raise StoreError(f"cannot write {self._path}: {error}") from error

    def _commit(self, statements: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        with self._db:
            for text, values in statements:
                self._db.execute(text, values)

    def _open(self) -> sqlite3.Connection:
        try:
            return _connect(self._path)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):  # disk, permissions, locks: no damage
                raise StoreError(f"cannot open {self._path}: {error}") from error
        self.set_aside = self._move_aside()
        try:
            return _connect(self._path)
        except sqlite3.Error as error:
            raise StoreError(f"cannot make {self._path}: {error}") from error

    def _move_aside(self) -> Path:
        number = 1
        while (target := self._path.with_name(f"{self._path.name}.damaged-{number}")).exists():
            number += 1
        try:
            for suffix in _SIDE_FILES:
                source = self._path.with_name(self._path.name + suffix)
                if source.exists():
                    source.replace(target.with_name(target.name + suffix))
        except OSError as error:
            raise StoreError.of("set aside", self._path, error) from error
        return target


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, check_same_thread=False)
    db.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        if db.execute("PRAGMA quick_check").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("quick_check found damage")
        _migrate(db, path)
        _look_for_tables(db)
    except UnicodeDecodeError as error:  # Python's, of SQLite's own message where it quotes a damaged schema
        db.close()
        raise sqlite3.DatabaseError("the schema is damaged") from error
    except (sqlite3.Error, StoreError):
        db.close()
        raise
    return db


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path} was written by a newer vacancy (version {version}): use that one, or move it"
        )
    for number, step in enumerate(MIGRATIONS[version:], start=version + 1):
        with db:
            db.execute("BEGIN")
            for statement in step:
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {number}")


def _look_for_tables(db: sqlite3.Connection) -> None:
    try:
        for columns in _TABLES:
            db.execute(f"SELECT {columns} LIMIT 0")
    except sqlite3.OperationalError as error:
        raise sqlite3.DatabaseError(f"its tables are not as they were made: {error}") from error


def _read_switches(db: sqlite3.Connection) -> LocalSwitches:
    switches = LocalSwitches()
    row = db.execute("SELECT until FROM pause").fetchone()
    if row is not None:
        switches.pause = LocalPause(None if row[0] is None else WallTime(row[0]))
    for name, enabled in db.execute("SELECT name, enabled FROM switch"):
        if name == LENDING:
            switches.lending = bool(enabled)
        elif name.startswith(_RESOURCE):
            switches.resources[name.removeprefix(_RESOURCE)] = bool(enabled)
    return switches


def _read_usage(db: sqlite3.Connection) -> dict[tuple[str, str], Usage]:
    """Recent days; older ones are dropped from the file."""
    with db:
        db.execute(
            "DELETE FROM usage WHERE day NOT IN (SELECT DISTINCT day FROM usage ORDER BY day DESC LIMIT ?)",
            (KEEP_DAYS,),
        )
    rows = db.execute("SELECT day, borrower, requests, seconds, tokens FROM usage")
    return {
        (day, borrower): Usage(requests, seconds, tokens) for day, borrower, requests, seconds, tokens in rows
    }


def _switch(name: str, enabled: bool) -> tuple[str, tuple[object, ...]]:
    return "INSERT OR REPLACE INTO switch (name, enabled) VALUES (?, ?)", (name, int(enabled))


def _count(day: str, borrower: str, usage: Usage) -> tuple[str, tuple[object, ...]]:
    return (
        "INSERT INTO usage VALUES (?, ?, ?, ?, ?) ON CONFLICT (day, borrower) DO UPDATE SET"
        " requests = requests + excluded.requests, seconds = seconds + excluded.seconds,"
        " tokens = tokens + excluded.tokens",
        (day, borrower, usage.requests, usage.seconds, usage.tokens),
    )
