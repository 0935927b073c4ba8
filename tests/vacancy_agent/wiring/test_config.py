"""The file of a manifest: what is read of it, and what is said where it cannot be."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from vacancy_agent.wiring.config import MOST_BYTES, RefusedError, content_again, content_of
from vacancy_api.yaml_document import MAX_BYTES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("what", ["nothing", "a folder"])
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, what: str):
    path = tmp_path / "host.yaml"
    if what == "a folder":
        path.mkdir()
    with pytest.raises(RefusedError) as error:
        content_of(path)
    why = "Is a directory" if what == "a folder" else "No such file or directory"
    assert error.value.errors == [f"cannot be read: {why}"]
    assert content_again(path) is None


def test_no_more_is_read_than_a_manifest_may_have(tmp_path: Path):
    path = tmp_path / "host.yaml"
    with path.open("wb") as file:
        file.truncate(10 * MAX_BYTES)
    assert len(content_of(path)) == MAX_BYTES + 1 == MOST_BYTES + 1


def test_a_pipe_is_read_once_and_never_again(tmp_path: Path):
    """`vacancy agent --manifest <(...)`: a second read would find it empty, or wait for ever."""
    reader, writer = os.pipe()
    os.write(writer, b"once")
    os.close(writer)
    try:
        path = tmp_path / "link"
        path.symlink_to(f"/dev/fd/{reader}")
        assert content_of(path) == b"once"
        assert content_again(path) is None
    finally:
        os.close(reader)


def test_an_unchanged_file_reads_the_same(tmp_path: Path):
    (tmp_path / "host.yaml").write_bytes(b"x: 1\n")
    assert content_again(tmp_path / "host.yaml") == content_of(tmp_path / "host.yaml") == b"x: 1\n"
