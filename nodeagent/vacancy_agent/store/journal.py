"""The hold journal: which jobs an upstream may be working on, kept through a `kill -9`.

Invariant: a slot is written before its request is forwarded, and freed only by proof that the job ended. The
slots live in a mapped file, so the kernel keeps what a killed process wrote, and no fsync stands in the
request path (it would cost milliseconds where the slot costs one microsecond). What a *machine* that stops
loses is made good at start: see `journal_format.recover`.

A file of its own per upstream is the partition. Rejected: one file with a table of partitions, where a
flipped byte in the table makes its holds nobody's; and SQLite, which cannot commit in microseconds.

The mapping is written in full when it is made, so that a full disk is met here, as an error, and not later as
SIGBUS. (On file systems that copy on write, the kernel may still need space for a page: see the limits.)
"""

from __future__ import annotations

import mmap
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from vacancy_agent.store.errors import StoreError
from vacancy_agent.store.files import private_folder, replace_file
from vacancy_agent.store.journal_format import (
    FREE,
    HEADER_SIZE,
    SLOT_SIZE,
    Header,
    Phase,
    RecoveredHold,
    new_image,
    pack_crc,
    pack_header,
    pack_names,
    pack_numbers,
    pack_slot,
    read_hold,
    read_slot,
    recover,
    slot_range,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from vacancy_agent.core.facts import ProcessIdentity, WallTime

SUFFIX = ".holds"
SLOTS_PER_PAGE = 4096 // SLOT_SIZE
_MOST_NAMES = 256
MARGIN = 8
"""Slots beyond the upstream's own: for the stand-in of unseen jobs, and for jobs from before it had fewer."""


class JournalFullError(Exception):
    """No free slot: the upstream has more jobs and holds than it can have. Refuse the request."""


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """One configured upstream. `local`: its server runs on this machine, so a reboot ended its jobs."""

    upstream: str
    slots: int
    local: bool

    @property
    def capacity(self) -> int:
        """Slots of its file: whole pages."""
        return -(-(self.slots + MARGIN) // SLOTS_PER_PAGE) * SLOTS_PER_PAGE


class Partition:
    """One upstream's slots. Resolve it once; `write` and `free` are the request path."""

    def __init__(self, path: Path, upstream: str, boot_id: str) -> None:
        """Map the file, which `HoldJournal` has put in order."""
        self.upstream = upstream
        self._path = path
        self._boot_id = boot_id
        self._map: mmap.mmap
        self._slots: list[memoryview] = []
        self._used: bytearray = bytearray()
        self._free: list[int] = []
        self._names: dict[tuple[str, str], bytes] = {}
        self._open_map()

    def write(
        self, job: int, borrower: str, model: str, started: WallTime, process: ProcessIdentity | None = None
    ) -> int:
        """Take a slot for a job that is about to be forwarded.

        Args:
            job: The job's number, below 2**64.
            borrower: Who asked; kept up to 64 bytes.
            model: What for; kept up to 156 bytes.
            started: When it was admitted.
            process: The upstream's process, where it is known.

        Returns:
            The slot's number, for `free`.

        Raises:
            JournalFullError: every slot is taken.
        """
        if not self._free:
            raise JournalFullError(self.upstream)
        pid, process_started = (process.pid, process.started) if process is not None else (0, 0.0)
        names = self._names.get((borrower, model))
        if names is None:
            names = self._remember(borrower, model)
        body = pack_numbers(1, pid, job, started, process_started) + names  # 1 = Phase.FORWARDING
        slot = self._free.pop()
        # One copy with the checksum at its end: a write torn by a kill reads as damaged, which is a hold.
        self._slots[slot][:] = body + pack_crc(zlib.crc32(body))
        self._used[slot] = 1
        return slot

    def _remember(self, borrower: str, model: str) -> bytes:
        """The names as a slot has them, kept in bounds: the models' come from borrowers."""
        if len(self._names) >= _MOST_NAMES:
            self._names.clear()
        names = self._names[borrower, model] = pack_names(borrower, model)
        return names

    def free(self, slot: int) -> None:
        """Give a slot back: its job has ended, proved."""
        if not self._used[slot]:
            raise ValueError(f"slot {slot} of {self.upstream} is free already")
        self._slots[slot][:] = FREE
        self._used[slot] = 0
        self._free.append(slot)

    def mark(self, slot: int, phase: Phase) -> None:
        """Note a later phase, for people who look at the file; what a slot means does not change by it."""
        self._amend(slot, phase=phase)

    def note_prompt(self, slot: int, prompt: str, *, confirmed: bool) -> None:
        """Note the id of the slot's prompt, by which the server can be asked about the job."""
        self._amend(slot, prompt=prompt, confirmed=confirmed)

    def _amend(self, slot: int, **changes: Phase | str | bool) -> None:
        record = read_slot(bytes(self._slots[slot]))
        if record is not None and self._used[slot]:
            self._slots[slot][:] = pack_slot(replace(record, **changes))  # type: ignore[arg-type]  # callers here

    def holds(self) -> tuple[RecoveredHold, ...]:
        """Every slot in use, as it would be found by an agent that starts now."""
        found = (read_hold(index, bytes(view)) for index, view in enumerate(self._slots))
        return tuple(hold for hold in found if hold is not None)

    @property
    def capacity(self) -> int:
        """Slots of the file."""
        return len(self._slots)

    def grow(self, capacity: int) -> None:
        """Have at least `capacity` slots; slots in use keep their numbers.

        Raises:
            StoreError: the file could not be made longer; it goes on as it was.
        """
        missing = capacity - self.capacity
        if missing <= 0:
            return
        end = HEADER_SIZE + self.capacity * SLOT_SIZE
        try:
            with self._path.open("r+b") as file:
                file.truncate(end)
                file.seek(end)
                file.write(FREE * missing)
        except OSError as error:
            raise StoreError.of("extend the hold journal", self._path, error) from error
        self._release()
        self._open_map()
        self._write_header(clean=False)

    def close(self) -> None:
        """Put everything on the disk and say so in the file: the next start need not assume unseen jobs."""
        self._map.flush()
        self._write_header(clean=True)
        self._map.flush()
        self._release()

    def _write_header(self, *, clean: bool) -> None:
        header = Header(self._boot_id, clean=clean, capacity=self.capacity, upstream=self.upstream)
        self._map[:HEADER_SIZE] = pack_header(header)

    def _open_map(self) -> None:
        try:
            with self._path.open("r+b") as file:
                self._map = mmap.mmap(file.fileno(), 0)
        except OSError as error:
            raise StoreError.of("map the hold journal", self._path, error) from error
        whole = memoryview(self._map)
        count = (len(self._map) - HEADER_SIZE) // SLOT_SIZE
        self._slots = [whole[slot_range(index)] for index in range(count)]
        self._used = bytearray(view != FREE for view in self._slots)
        self._free = [index for index in reversed(range(count)) if not self._used[index]]

    def _release(self) -> None:
        for view in self._slots:
            view.release()
        self._slots = []
        self._map.close()


class HoldJournal:
    """The partitions of every configured upstream. The state directory's lock keeps a second agent out."""

    def __init__(self, folder: Path, boot_id: str) -> None:
        """Use `folder`, made if need be.

        Raises:
            StoreError: the folder cannot be used.
        """
        private_folder(folder)
        self._folder = folder
        self._boot_id = boot_id
        self._open: dict[str, Partition] = {}
        self._configured: frozenset[str] = frozenset()

    def configure(self, specs: Iterable[PartitionSpec]) -> Mapping[str, tuple[RecoveredHold, ...]]:
        """Have a partition for each of these upstreams: at start, and again when the configuration changes.

        The file of an upstream that is no longer named stays, with its holds; jobs still running there are
        freed through the `Partition` they have. When it is named again, its holds are in the answer again.

        Returns:
            The slots in use of each upstream that was not configured before this call.

        Raises:
            StoreError: a file could not be made or read. The former configuration stays as it is.
        """
        wanted = {spec.upstream: spec for spec in specs}
        opened: dict[str, Partition] = {}
        try:
            for name, spec in wanted.items():
                if name in self._open:
                    self._open[name].grow(spec.capacity)
                else:
                    opened[name] = self._open_partition(spec)
        except StoreError:
            for partition in opened.values():
                partition.close()
            raise
        self._open |= opened
        appeared, self._configured = wanted.keys() - self._configured, frozenset(wanted)
        return {name: self._open[name].holds() for name in sorted(appeared)}

    def partition(self, upstream: str) -> Partition:
        """The partition of a configured upstream. Look it up once, not per request."""
        return self._open[upstream]

    def left_over(self) -> tuple[str, ...]:
        """Upstreams that have a file here but are not configured."""
        names = (unquote(path.name.removesuffix(SUFFIX)) for path in self._folder.glob(f"*{SUFFIX}"))
        return tuple(sorted(set(names) - self._configured))

    def close(self) -> None:
        """Close every file as complete. Call it when nothing can be forwarded any more."""
        for partition in self._open.values():
            partition.close()
        self._open = {}
        self._configured = frozenset()

    def _open_partition(self, spec: PartitionSpec) -> Partition:
        # A fresh file replaces the old one whole, so a crash in here leaves the old state to be judged again.
        path = self._folder / f"{quote(spec.upstream, safe='')}{SUFFIX}"
        try:
            old = path.read_bytes()
        except FileNotFoundError:
            header = Header(self._boot_id, clean=False, capacity=spec.capacity, upstream=spec.upstream)
            image = new_image(header)
        except OSError as error:
            raise StoreError.of("read the hold journal", path, error) from error
        else:
            image = recover(
                old, upstream=spec.upstream, boot_id=self._boot_id, local=spec.local, capacity=spec.capacity
            ).image
        replace_file(path, bytes(image))
        return Partition(path, spec.upstream, self._boot_id)
