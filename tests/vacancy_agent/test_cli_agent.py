"""`vacancy agent`: its options reach the process, and its ends become exit codes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from vacancy_agent import cli
from vacancy_agent.wiring import main
from vacancy_agent.wiring.main import StartError


class Process:
    """Stands for the process: what it was started with, and how it ends."""

    def __init__(self) -> None:
        self.started: list[tuple[Any, ...]] = []
        self.end: int | BaseException = 0

    def main(self, manifest: Path, state_dir: Path | None, *, quiet: bool = False) -> int:
        self.started.append((manifest, state_dir, quiet))
        if isinstance(self.end, BaseException):
            raise self.end
        return self.end


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    one = Process()
    monkeypatch.setattr(main, "main", one.main)
    return one


def test_the_options_reach_the_process(process: Process):
    assert cli.main(["agent", "--manifest", "host.yaml"]) == 0
    assert cli.main(["agent", "--manifest", "host.yaml", "--state-dir", "state", "--quiet"]) == 0
    assert process.started == [(Path("host.yaml"), None, False), (Path("host.yaml"), Path("state"), True)]


@pytest.mark.parametrize(("wrong", "code"), [(True, 2), (False, 1)])
def test_what_keeps_it_from_starting_is_a_line_each(
    process: Process, capsys: pytest.CaptureFixture[str], wrong: bool, code: int
):
    process.end = StartError(["host.yaml: spec.a: is wrong", "host.yaml: spec.b: too"], input_is_wrong=wrong)
    assert cli.main(["agent", "--manifest", "host.yaml"]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        "vacancy agent: host.yaml: spec.a: is wrong\nvacancy agent: host.yaml: spec.b: too\n"
    )


def test_a_bug_keeps_its_traceback(process: Process):
    process.end = ExceptionGroup("a part failed", [LookupError("a bug")])
    with pytest.raises(ExceptionGroup, match="a part failed"):
        cli.main(["agent", "--manifest", "host.yaml"])


def test_a_package_that_is_missing_is_named_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.delitem(sys.modules, "vacancy_agent.wiring.main")
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    for name in [name for name in sys.modules if name.startswith("vacancy_agent.wiring")]:
        monkeypatch.delitem(sys.modules, name)
    assert cli.main(["agent", "--manifest", "host.yaml"]) == 1
    assert capsys.readouterr().err == "vacancy agent needs the package aiohttp: install vacancy[agent]\n"


def test_a_manifest_or_an_identity_is_needed_and_not_both(capsys: pytest.CaptureFixture[str]):
    for options in ([], ["--manifest", "a", "--join", "b"]):
        with pytest.raises(SystemExit) as end:
            cli.main(["agent", *options])
        assert end.value.code == 2
        assert "--manifest" in capsys.readouterr().err
