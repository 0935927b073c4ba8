from __future__ import annotations

import struct
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vacancy_agent.core.facts import ProcessIdentity, WallTime
from vacancy_agent.store.journal_format import (
    BORROWER_BYTES,
    FREE,
    HEADER_SIZE,
    MODEL_BYTES,
    PROMPT_BYTES,
    SLOT_SIZE,
    Header,
    HoldCause,
    HoldRecord,
    Phase,
    bounded,
    new_image,
    pack_header,
    pack_slot,
    read_header,
    read_slot,
    recover,
    slot_range,
)

BOOT, OTHER_BOOT = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
CAPACITY = 4
PROMPT = "e186e2ca-b3f5-4bda-be65-4619f2694c33"

processes = st.builds(
    ProcessIdentity, pid=st.integers(1, 2**32 - 1), started=st.floats(allow_nan=False, allow_infinity=False)
)
records = st.builds(
    HoldRecord,
    job=st.integers(0, 2**64 - 1),
    phase=st.sampled_from([Phase.FORWARDING, Phase.TRACKING, Phase.HELD]),
    borrower=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=BORROWER_BYTES // 4),
    model=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=MODEL_BYTES // 4),
    started=st.floats(allow_nan=False).map(WallTime),
    process=st.none() | processes,
)
prompted = st.builds(
    replace,
    records,
    prompt=st.uuids().map(str),
    confirmed=st.booleans(),
    model=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=(MODEL_BYTES - PROMPT_BYTES) // 4),
)
slot_contents = st.lists(st.none() | records | prompted, min_size=CAPACITY, max_size=CAPACITY)


def record(job: int = 7) -> HoldRecord:
    return HoldRecord(job, Phase.FORWARDING, "team-a", "llama", WallTime(1.0), ProcessIdentity(42, 3.5))


def image(contents: list[HoldRecord | None], *, boot: str = BOOT, clean: bool = False) -> bytearray:
    made = new_image(Header(boot, clean=clean, capacity=len(contents), upstream="gpu"))
    for index, content in enumerate(contents):
        if content is not None:
            made[slot_range(index)] = pack_slot(content)
    return made


def recovered(raw: bytes, *, boot: str = BOOT, local: bool = True, capacity: int = CAPACITY):
    return recover(raw, upstream="gpu", boot_id=boot, local=local, capacity=capacity)


@given(records | prompted)
def test_a_slot_reads_back_as_written(written: HoldRecord):
    raw = pack_slot(written)
    assert len(raw) == SLOT_SIZE
    assert read_slot(raw) == written


def test_a_slot_of_a_version_that_knew_no_prompts_reads_as_ever():
    body = struct.pack("<B3xIQdd64s156s", 1, 42, 7, 1.0, 3.5, b"team-a", b"m" * 156)
    found = read_slot(body + struct.pack("<I", zlib.crc32(body)))
    assert found == replace(record(), model="m" * 156)


def test_a_long_model_is_cut_to_make_room_for_a_prompt():
    long = replace(record(), model="m" * 156, prompt=PROMPT, confirmed=True)
    assert read_slot(pack_slot(long)) == replace(long, model="m" * 140)


@pytest.mark.parametrize("prompt", ["7", PROMPT.upper(), PROMPT.replace("-", ""), ""])
def test_a_prompt_that_is_no_uuid_has_no_room(prompt: str):
    assert read_slot(pack_slot(replace(record(), prompt=prompt, confirmed=True))) == record()


def test_a_slot_with_a_mark_that_no_version_wrote_is_damage():
    body = bytearray(pack_slot(record())[:-4])
    body[1] = 3
    assert read_slot(bytes(body) + struct.pack("<I", zlib.crc32(body))) is None


@given(st.text(st.characters(), max_size=200), st.integers(0, 70))
def test_text_is_cut_to_its_field_at_a_characters_end(text: str, size: int):
    raw = bounded(text, size)
    assert len(raw) <= size
    assert text.encode("utf-8", "replace").startswith(raw)
    raw.decode()


def test_the_free_image_is_no_record_and_zeroes_are_damage():
    assert read_slot(FREE) is None
    made = image([None])
    made[slot_range(0)] = bytes(SLOT_SIZE)
    assert [hold.cause for hold in recovered(bytes(made), capacity=1).holds] == [HoldCause.DAMAGED]


def test_a_slot_of_a_kind_that_no_version_wrote_is_damage():
    from vacancy_agent.store.journal_format import pack_body, pack_crc, zlib

    body = pack_body(99, 0, 1, 0.0, 0.0, b"", b"")
    assert read_slot(body + pack_crc(zlib.crc32(body))) is None


def test_the_header_survives_the_loss_of_either_copy():
    page = bytearray(pack_header(Header(BOOT, clean=True, capacity=3, upstream="gpu")))
    for at in (0, 2048):
        bad = bytearray(page)
        bad[at] ^= 1
        assert read_header(bytes(bad)) == Header(BOOT, clean=True, capacity=3, upstream="gpu")
    page[0] ^= 1
    page[2048] ^= 1
    assert read_header(bytes(page)) is None


def test_copies_that_differ_count_as_unclean():
    clean = pack_header(Header(BOOT, clean=True, capacity=3, upstream="gpu"))
    torn = pack_header(Header(BOOT, clean=False, capacity=3, upstream="gpu"))[:2048] + clean[2048:]
    header = read_header(torn)
    assert header is not None
    assert not header.clean


# What a file found at start means.
#   file's boot, closed by the agent, server on this machine -> causes of the holds found
def test_the_same_boot_keeps_every_job():
    for local in (True, False):
        for clean in (True, False):
            found = recovered(bytes(image([record(), None, None, None], clean=clean)), local=local)
            assert [(hold.cause, hold.record) for hold in found.holds] == [(HoldCause.INTERRUPTED, record())]


def test_another_boot_voids_what_a_local_server_had_damage_included():
    made = image([record(), None, record(8), None], boot=OTHER_BOOT)
    made[slot_range(2).start] ^= 0xFF
    found = recovered(bytes(made), local=True)
    assert found.holds == ()
    assert found.image == image([None] * CAPACITY)


def test_another_boot_keeps_the_jobs_of_a_server_on_another_host():
    found = recovered(bytes(image([record(), None, None, None], boot=OTHER_BOOT, clean=True)), local=False)
    assert [hold.cause for hold in found.holds] == [HoldCause.INTERRUPTED]


def test_after_an_unclean_shutdown_a_server_on_another_host_starts_as_held_even_without_a_job():
    found = recovered(bytes(image([None] * CAPACITY, boot=OTHER_BOOT)), local=False)
    assert [hold.cause for hold in found.holds] == [HoldCause.UNSEEN]
    # ... and the next start, of the same boot, still finds it: once, however often that happens.
    again = recovered(bytes(found.image), local=False)
    assert again.holds == found.holds
    assert recovered(bytes(image([again.holds[0].record], boot=OTHER_BOOT)), local=False).holds == found.holds


def test_a_file_cut_short_holds():
    for length in range(0, HEADER_SIZE + CAPACITY * SLOT_SIZE, 64):
        cut = bytes(image([None, None, None, record()]))[:length]
        assert recovered(cut).holds, length


def test_a_full_file_needs_no_stand_in():
    made = image([record(job) for job in range(CAPACITY)], boot=OTHER_BOOT)
    assert len(recovered(bytes(made), local=False).holds) == CAPACITY


def test_a_larger_capacity_keeps_the_slots_where_they_are():
    found = recovered(bytes(image([None, record(), None, None])), capacity=9)
    assert [hold.slot for hold in found.holds] == [1]
    assert len(found.image) == HEADER_SIZE + 9 * SLOT_SIZE


@given(
    slot_contents,
    st.lists(
        st.tuples(st.integers(0, HEADER_SIZE + CAPACITY * SLOT_SIZE - 1), st.integers(1, 255)), max_size=6
    ),
    st.booleans(),
)
def test_flipped_bytes_never_lose_a_hold(
    contents: list[HoldRecord | None], flips: list[tuple[int, int]], local: bool
):
    made = image(contents)
    for at, mask in flips:
        made[at] ^= mask
    found = recovered(bytes(made), local=local)
    by_slot = {hold.slot: hold for hold in found.holds}
    intact = image(contents)
    for index, content in enumerate(contents):
        if made[slot_range(index)] == intact[slot_range(index)]:
            if content is not None:
                assert by_slot[index].record == content
        else:
            assert index in by_slot, "a damaged slot holds, whatever it was"
    # What was decided is stable: the next start decides the same.
    assert recovered(bytes(found.image), local=local).holds == found.holds
