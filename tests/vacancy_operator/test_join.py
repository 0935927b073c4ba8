from __future__ import annotations

import base64
import io
import re
import subprocess
import tarfile
from typing import TYPE_CHECKING

import pytest

from vacancy_operator.core.tokens import encoded
from vacancy_operator.join import FILES, JoinError, archive, files_of, posix_command, powershell_command

if TYPE_CHECKING:
    from pathlib import Path

VALUES = {
    "server": "https://10.0.0.1:6443",
    "ca.crt": "-----BEGIN CERTIFICATE-----\n",
    "token": "t0k",
    "namespace": "lending",
    "name": "box",
}


def test_the_files_are_those_of_the_secret() -> None:
    assert files_of({"data": encoded(VALUES)}, "box") == VALUES
    assert tuple(VALUES) == FILES


def test_what_is_missing_is_told() -> None:
    with pytest.raises(JoinError, match=r"spec\.external"):
        files_of(None, "box")
    with pytest.raises(JoinError, match="lacks token yet"):
        files_of({"data": encoded({key: VALUES[key] for key in FILES if key != "token"})}, "box")


def test_the_command_makes_the_files_for_their_owner_alone_and_starts_the_agent(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    agent = programs / "vacancy"
    agent.write_text('#!/bin/sh\necho "$@"\n')
    agent.chmod(0o755)
    environment = {"HOME": str(tmp_path), "PATH": f"{programs}:/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", "-c", posix_command(VALUES)], env=environment, capture_output=True, text=True, check=True
    )
    folder = tmp_path / ".config" / "vacancy" / "join" / "box"
    assert done.stdout == f"agent --join {folder}\n"
    assert {path.name: path.read_text() for path in folder.iterdir()} == VALUES
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


def test_the_command_for_windows_carries_the_same_files() -> None:
    command = powershell_command(VALUES)
    packed = re.search(r"FromBase64String\('([^']+)'\)", command)
    assert packed is not None
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed[1]))) as tar:
        found = {entry.name: (tar.extractfile(entry) or io.BytesIO()).read().decode() for entry in tar}
    assert found == VALUES
    assert command.endswith("vacancy agent --join $d")


def test_the_same_files_make_the_same_command() -> None:
    assert archive(VALUES) == archive(dict(VALUES))
