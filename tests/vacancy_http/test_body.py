"""Bodies in memory and in memory files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vacancy_http.body import FILE_ABOVE, Body, BodySink, anonymous_file, write_all

MIB = 1 << 20


def collected(pieces: list[bytes], expected: int) -> Body:
    sink = BodySink(expected)
    for piece in pieces:
        sink.write(piece)
    assert sink.length == sum(map(len, pieces))
    return sink.finish()


@pytest.mark.parametrize("expected", [0, 300])
def test_a_small_body_is_one_bytes_object(expected: int) -> None:
    body = collected([b"a" * 100] * 3, expected)
    assert len(body) == 300
    assert body.bytes == b"a" * 300
    assert body.view() == b"a" * 300
    assert body.fileno() is None
    body.close()
    with pytest.raises(ValueError, match="closed"):
        body.view()
    with pytest.raises(ValueError, match="closed"):
        _ = body.bytes


@pytest.mark.parametrize("known", [True, False])
def test_a_large_one_is_a_file_another_process_can_read(known: bool) -> None:
    pieces = [bytes([i]) * 200_000 for i in range(10)]
    body = collected(pieces, 2_000_000 if known else 0)
    descriptor = body.fileno()
    assert descriptor is not None
    assert os.pread(descriptor, 2_000_001, 0) == b"".join(pieces)
    assert body.bytes == b"".join(pieces)
    assert len(body.view()) == len(body) == 2_000_000
    body.close()
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(descriptor)
    with pytest.raises(ValueError, match="closed"):
        body.view()


def test_the_border_is_1_mib() -> None:
    assert collected([b"x" * FILE_ABOVE], FILE_ABOVE).fileno() is None
    body = collected([b"x" * FILE_ABOVE, b"y"], 0)
    assert body.fileno() is not None
    body.close()


def test_close_while_somebody_holds_a_slice_leaves_that_slice_alone() -> None:
    body = collected([b"z" * (2 * MIB)], 2 * MIB)
    piece = body.view()[:10]
    body.close()
    assert piece == b"z" * 10


def test_a_discarded_sink_gives_its_file_back() -> None:
    sink = BodySink(2 * MIB)
    sink.write(b"x" * MIB)
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else None
    sink.discard()
    if before is not None:
        assert len(list(Path("/proc/self/fd").iterdir())) == before - 1


def test_without_memory_files_an_unlinked_one_takes_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    body = collected([b"x" * (2 * MIB)], 2 * MIB)
    assert body.bytes == b"x" * (2 * MIB)
    body.close()


def test_a_file_that_takes_less_than_it_is_given_gets_the_rest() -> None:
    taken: list[bytes] = []

    class Slow:
        def write(self, data: bytes) -> int:
            taken.append(data[:3])
            return len(taken[-1])

    write_all(Slow(), b"abcdefgh")  # type: ignore[arg-type]
    assert b"".join(taken) == b"abcdefgh"


def test_an_anonymous_file_has_no_name_to_find() -> None:
    with anonymous_file() as file:
        assert not isinstance(file.name, str)
