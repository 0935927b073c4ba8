"""`hack/ollama build`: once, whole or not at all, and what it lacks is named before minutes are spent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from golang.say import BuildError
from ollamas import build as building
from ollamas import places
from ollamas.build import build
from ollamas.places import MODULE, find, folder, version

GO = """#!/bin/sh
[ "$1" = version ] && { echo "go version go1.26.8 linux/amd64"; exit; }
echo "$* CGO=$CGO_ENABLED $CGO_CPPFLAGS" >> "$FAKE_LOG"
[ "$1" = list ] && { echo /somewhere/malgo; exit; }
[ "$1" = build ] || exit 0
for word; do [ "$previous" = -o ] && out=$word; previous=$word; done
echo half > "$out"
[ -z "$FAKE_FAILS" ] || { echo "no such header" >&2; exit 1; }
chmod +x "$out"
"""


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `go` that writes down what it was asked, and everything else that a build needs."""
    program, header, log = tmp_path / "go", tmp_path / "header.h", tmp_path / "asked"
    program.write_text(GO)
    program.chmod(0o755)
    header.touch()
    monkeypatch.setattr(building, "HEADERS", {"nlohmann-json3-dev": header})
    monkeypatch.setattr(building.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setenv("VACANCY_GO", str(program))
    monkeypatch.setenv("VACANCY_KUBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE_LOG", str(log))
    monkeypatch.delenv("VACANCY_OLLAMA", raising=False)
    return log


def test_it_is_built_once_with_the_compiler_and_the_header_of_another_module(fake_go: Path) -> None:
    assert find() is None
    assert build() == build() == folder() / "ollama"
    download, where, built = fake_go.read_text().splitlines()
    assert download.startswith("mod download github.com/gen2brain/malgo ")
    assert where.startswith("list -m")
    assert f"version.Version={version().removeprefix('v')}" in built
    assert f"CGO=1 -I{folder()}/include" in built
    assert (folder() / "include" / "miniaudio").readlink() == Path("/somewhere/malgo")


def test_a_failed_build_leaves_nothing_that_looks_done(
    fake_go: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FAILS", "1")
    with pytest.raises(BuildError, match="no such header"):
        build()
    assert find() is None
    monkeypatch.delenv("FAKE_FAILS")
    build()


def test_what_is_missing_is_named_with_what_to_install(
    fake_go: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "HEADERS", {"libstb-dev": Path("/nowhere/stb.h")})
    monkeypatch.setattr(building.shutil, "which", lambda name: None if name == "g++" else f"/bin/{name}")
    with pytest.raises(BuildError, match=r"apt-get install libstb-dev g\+\+"):
        build()
    assert not fake_go.exists()


def test_one_that_is_there_is_used(fake_go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VACANCY_OLLAMA", str(tmp_path / "mine"))
    (tmp_path / "mine").touch(0o755)
    assert build() == tmp_path / "mine"
    assert not fake_go.exists()


def test_what_is_pinned() -> None:
    assert version() == "v0.17.4"
    assert f"tool {places.PACKAGE}" in (MODULE / "go.mod").read_text()
    assert "github.com/gen2brain/malgo" in (MODULE / "go.sum").read_text()


def test_the_command_says_what_it_does() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ollamas", "--help"],
        env={**os.environ, "PYTHONPATH": str(MODULE.parent)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "{build,run}" in done.stdout
