from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vacancy_agent.store.errors import StoreError
from vacancy_agent.store.files import private_folder, replace_file

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes of a file are those of POSIX")


@posix
def test_a_folder_is_made_private_even_when_it_was_not(tmp_path: Path):
    folder = tmp_path / "a" / "b"
    private_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    private_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path):
    (tmp_path / "x").write_text("")
    with pytest.raises(StoreError, match="make the folder"):
        private_folder(tmp_path / "x")


@posix
def test_replacing_is_whole_and_private(tmp_path: Path):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_leaves_the_old_content_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    # A full disk without being root: the temporary file's name leads to the device that is always full.
    monkeypatch.setattr("os.getpid", lambda: 1)
    (tmp_path / ".f.1.part").symlink_to("/dev/full")
    with pytest.raises(StoreError, match="the disk is full"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
