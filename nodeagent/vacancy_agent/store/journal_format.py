"""How a hold looks on disk, and what a file found at start means. Pure: bytes in, decisions out.

Invariant: whatever happens to the bytes, a job that may still run keeps its upstream held. A slot is free
only when it *is* the free image, checksum included; zeroed, torn or flipped bytes are a hold, no vacancy.
The failure this prevents is a lost hold: new work admitted beside work that nobody waits for any more.

Option rejected: zeroes for a free slot. A page that the file system lost would then read as "nothing runs".
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from uuid import UUID

from vacancy_agent.core.facts import ProcessIdentity, WallTime

SLOT_SIZE = 256
HEADER_SIZE = 4096
HEADER_COPIES = (0, 2048)
MAGIC = b"VcyHolds"
VERSION = 1
BORROWER_BYTES = 64
MODEL_BYTES = 156
PROMPT_BYTES = 16
"""Of a job with a prompt, these end the model's field."""

_BODY = struct.Struct(f"<B3xIQdd{BORROWER_BYTES}s{MODEL_BYTES}s")
_PROMPT_BODY = struct.Struct(f"<BB2xIQdd{BORROWER_BYTES}s{MODEL_BYTES - PROMPT_BYTES}s{PROMPT_BYTES}s")
"""The same with a mark where the other has a zero, so that slots of either form can be told apart."""
_NO_PROMPT, _ASKED, _CONFIRMED = range(3)
_HEADER = struct.Struct("<8sIIB3x44s64s")
_CRC = struct.Struct("<I")
_FREE_KIND = 0

_NUMBERS = struct.Struct("<B3xIQdd")
_NAMES = struct.Struct(f"{BORROWER_BYTES}s{MODEL_BYTES}s")
pack_numbers = _NUMBERS.pack
"""What of a slot without a prompt stands before `pack_names`."""
pack_body = _BODY.pack
pack_crc = _CRC.pack


class Phase(IntEnum):
    """Where a job was when its slot was written last. Every phase found at start is a hold."""

    FORWARDING = 1
    TRACKING = 2
    HELD = 3
    UNSEEN = 4
    """No job: work may run that an unclean shutdown of the machine kept out of the journal."""


_PHASES = frozenset(int(phase) for phase in Phase)


class HoldCause(StrEnum):
    """Why an upstream starts as held."""

    INTERRUPTED = "interrupted"
    """The agent ended while the job ran or was held."""
    DAMAGED = "damaged"
    """The slot's checksum is wrong: whatever it said may still run."""
    UNSEEN = "unseen"
    """The machine stopped without notice, or the file itself was damaged: jobs may be missing from it."""


@dataclass(frozen=True, slots=True)
class HoldRecord:
    """One job as written before it was forwarded. Text is cut to its field, at a character's end."""

    job: int
    phase: Phase
    borrower: str
    model: str
    started: WallTime
    process: ProcessIdentity | None = None
    """The upstream's process when the job was forwarded, where one is known."""
    prompt: str | None = None
    """The id of a ComfyUI submission, a UUID: the server can be asked about it."""
    confirmed: bool = False
    """The server has answered with this very id."""


@dataclass(frozen=True, slots=True)
class RecoveredHold:
    """A slot that was in use when the journal was opened; `record` is None when it cannot be read."""

    slot: int
    cause: HoldCause
    record: HoldRecord | None


@dataclass(frozen=True, slots=True)
class Header:
    """First page of a journal file, kept twice."""

    boot_id: str
    clean: bool
    """The agent closed the file itself, and the disk has it."""
    capacity: int
    upstream: str


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a file found at start amounts to: its next content, and the holds in it."""

    image: bytearray
    holds: tuple[RecoveredHold, ...]


def pack_slot(record: HoldRecord) -> bytes:
    """The slot's 256 bytes. `Partition.write` does the same inline, for speed, of a job without a prompt."""
    process = record.process
    pid, started = (process.pid, process.started) if process else (0, 0.0)
    who, prompt = bounded(record.borrower, BORROWER_BYTES), _uuid(record.prompt)
    if prompt is None:
        what = bounded(record.model, MODEL_BYTES)
        body = pack_body(record.phase, pid, record.job, record.started, started, who, what)
    else:
        mark = _CONFIRMED if record.confirmed else _ASKED
        what = bounded(record.model, MODEL_BYTES - PROMPT_BYTES)
        body = _PROMPT_BODY.pack(
            record.phase, mark, pid, record.job, record.started, started, who, what, prompt
        )
    return body + pack_crc(zlib.crc32(body))


def _uuid(prompt: str | None) -> bytes | None:
    """A prompt's id as a slot has it. What is no UUID has no room: its hold ends by another proof."""
    try:
        return UUID(prompt).bytes if prompt is not None and str(UUID(prompt)) == prompt else None
    except ValueError:
        return None


def bounded(text: str, size: int) -> bytes:
    """At most `size` bytes of UTF-8; a character that does not fit is left out, a lone surrogate is a `?`."""
    raw = text.encode("utf-8", "replace")
    return raw if len(raw) <= size else raw[:size].decode("utf-8", "ignore").encode()


def pack_names(borrower: str, model: str) -> bytes:
    """The names of a slot without a prompt."""
    return _NAMES.pack(bounded(borrower, BORROWER_BYTES), bounded(model, MODEL_BYTES))


def _free_image() -> bytes:
    body = pack_body(_FREE_KIND, 0, 0, 0.0, 0.0, b"", b"")
    return body + pack_crc(zlib.crc32(body))


FREE = _free_image()


def read_slot(raw: bytes) -> HoldRecord | None:
    """The record in a slot that is not free; None when the bytes are not what was written."""
    body = raw[: _BODY.size]
    if len(raw) != SLOT_SIZE or pack_crc(zlib.crc32(body)) != raw[_BODY.size :]:
        return None
    kind, mark = body[0], body[1]
    if kind not in _PHASES or mark > _CONFIRMED:
        return None
    if mark == _NO_PROMPT:
        _, pid, job, started, process_started, borrower, model = _BODY.unpack(body)
        prompt = None
    else:
        _, _, pid, job, started, process_started, borrower, model, raw = _PROMPT_BODY.unpack(body)
        prompt = str(UUID(bytes=raw))
    return HoldRecord(
        job=job,
        phase=Phase(kind),
        borrower=_text(borrower),
        model=_text(model),
        started=WallTime(started),
        process=ProcessIdentity(pid, process_started) if pid else None,
        prompt=prompt,
        confirmed=mark == _CONFIRMED,
    )


def _text(raw: bytes) -> str:
    return raw.rstrip(b"\0").decode("utf-8", "replace")


def pack_header(header: Header) -> bytes:
    """The first page: the same bytes twice, so that one bad spot does not cost what they say."""
    boot = header.boot_id.encode()
    body = _HEADER.pack(
        MAGIC, VERSION, header.capacity, header.clean, boot, bounded(header.upstream, BORROWER_BYTES)
    )
    copy = body + pack_crc(zlib.crc32(body))
    page = bytearray(HEADER_SIZE)
    for at in HEADER_COPIES:
        page[at : at + len(copy)] = copy
    return bytes(page)


def read_header(image: bytes) -> Header | None:
    """The header, from either copy. Two good copies that differ (torn by a crash) count as unclean."""
    found = [header for header in (_read_copy(image, at) for at in HEADER_COPIES) if header is not None]
    if not found:
        return None
    first, last = found[0], found[-1]
    if first == last:
        return first
    return Header(
        first.boot_id, clean=False, capacity=max(first.capacity, last.capacity), upstream=first.upstream
    )


def _read_copy(image: bytes, at: int) -> Header | None:
    body, crc = image[at : at + _HEADER.size], image[at + _HEADER.size : at + _HEADER.size + _CRC.size]
    if len(body) != _HEADER.size or pack_crc(zlib.crc32(body)) != crc:
        return None
    magic, version, capacity, clean, boot, upstream = _HEADER.unpack(body)
    if magic != MAGIC or version != VERSION:
        return None
    return Header(_text(boot), clean=clean == 1, capacity=capacity, upstream=_text(upstream))


def new_image(header: Header) -> bytearray:
    """A file without holds."""
    return bytearray(pack_header(header) + FREE * header.capacity)


def recover(image: bytes, *, upstream: str, boot_id: str, local: bool, capacity: int) -> Recovery:
    """Decide what a file found at start holds, and how it goes on.

    1. Another boot, and a server on this machine: that server's process is gone, and its holds with it.
    2. Every other slot that is not free is a hold: unreadable ones too.
    3. Slots may be missing (no readable header, a file cut short, or a server on another host after a
       shutdown that did not close the file): one more hold stands for them, unless one does already.

    Args:
        image: The whole file.
        upstream: Whose file it is.
        boot_id: The boot that runs now.
        local: The upstream's server runs on this machine.
        capacity: Slots the file shall have at least.
    """
    header = read_header(image)
    found = max((len(image) - HEADER_SIZE) // SLOT_SIZE, 0)
    named = header.capacity if header else 0
    fresh = new_image(Header(boot_id, clean=False, capacity=max(capacity, found), upstream=upstream))
    if header is not None and header.boot_id != boot_id and local:
        return Recovery(fresh, ())
    holds = list(_keep_slots(image, fresh, found))
    stopped_unseen = header is None or (header.boot_id != boot_id and not header.clean)
    if (stopped_unseen or found < named) and not any(hold.cause is HoldCause.UNSEEN for hold in holds):
        holds += _add_unseen(fresh, holds)
    return Recovery(fresh, tuple(sorted(holds, key=lambda hold: hold.slot)))


def slot_range(index: int) -> slice:
    """Where a slot lies in the file."""
    start = HEADER_SIZE + index * SLOT_SIZE
    return slice(start, start + SLOT_SIZE)


def read_hold(index: int, raw: bytes) -> RecoveredHold | None:
    """The hold in a slot, None when it is free."""
    if raw == FREE:
        return None
    record = read_slot(raw)
    if record is None:
        return RecoveredHold(index, HoldCause.DAMAGED, None)
    cause = HoldCause.UNSEEN if record.phase is Phase.UNSEEN else HoldCause.INTERRUPTED
    return RecoveredHold(index, cause, record)


def _keep_slots(image: bytes, fresh: bytearray, found: int) -> list[RecoveredHold]:
    kept = []
    for index in range(found):
        raw = bytes(image[slot_range(index)])
        hold = read_hold(index, raw)
        if hold is not None:
            fresh[slot_range(index)] = raw
            kept.append(hold)
    return kept


def _add_unseen(fresh: bytearray, holds: list[RecoveredHold]) -> list[RecoveredHold]:
    used = {hold.slot for hold in holds}
    capacity = (len(fresh) - HEADER_SIZE) // SLOT_SIZE
    free = next((index for index in range(capacity) if index not in used), None)
    if free is None:  # every slot is a hold: the upstream is held as it is
        return []
    record = HoldRecord(job=0, phase=Phase.UNSEEN, borrower="", model="", started=WallTime(0.0))
    fresh[slot_range(free)] = pack_slot(record)
    return [RecoveredHold(free, HoldCause.UNSEEN, record)]
