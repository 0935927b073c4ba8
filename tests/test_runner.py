"""`hack/test` must not be able to look good when it is not."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest

from runner.__main__ import chosen_stages, parse, summarise
from runner.ahead import Ahead
from runner.stage import Outcome, run_command, run_stage
from runner.tiers import TIERS, _skip_reasons

if TYPE_CHECKING:
    from pathlib import Path

GOOD = Outcome("unit", passed=True, seconds=1.0)
BAD = Outcome("unit", passed=False, seconds=1.0, note="exit code 1")
LACKING = Outcome(
    "component", passed=True, seconds=1.0, not_run=["missing: root; install: run as root (3 tests)"]
)


@pytest.mark.parametrize(
    ("outcomes", "require_all", "good"),
    [
        ([GOOD], True, True),
        ([GOOD, BAD], False, False),
        ([GOOD, LACKING], False, True),
        ([GOOD, LACKING], True, False),
    ],
)
def test_the_verdict(
    outcomes: list[Outcome], require_all: bool, good: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert summarise(outcomes, require_all=require_all) is good
    printed = capsys.readouterr().out
    assert ("=== good" in printed) is good
    for line in (line for outcome in outcomes for line in outcome.not_run):
        assert line in printed


@pytest.mark.parametrize(
    ("argv", "stages"),
    [
        ([], ["checks", "unit", "component", "control"]),
        (["--slow"], ["checks", "unit", "component", "control", "slow"]),
        (["-k", "gate"], ["unit", "component", "control"]),
        (["--only", "checks"], ["checks"]),
        (["--only", "component", "--only", "unit", "-x"], ["unit", "component"]),
    ],
)
def test_the_stages(argv: list[str], stages: list[str]) -> None:
    assert chosen_stages(*parse(argv)) == stages


def test_every_mark_belongs_to_a_tier() -> None:
    marks = " ".join(tier.marks for tier in TIERS)
    assert all(mark in marks for mark in ("component", "logind", "llama", "ollama", "kube", "slow"))


def test_skips_are_read_with_their_reasons_and_expected_failures_are_not(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    skips = [("pytest.skip", "missing: root"), ("pytest.skip", "missing: root"), ("pytest.xfail", "known")]
    cases = "".join(f'<testcase><skipped type="{kind}" message="{why}"/></testcase>' for kind, why in skips)
    report.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert _skip_reasons(report) == ["missing: root (2 tests)"]
    assert _skip_reasons(tmp_path / "none.xml") == []


def test_what_takes_minutes_is_made_beside_the_stages_before(capsys: pytest.CaptureFixture[str]) -> None:
    ahead = Ahead([sys.executable, "-c", "print('made'); raise SystemExit(3)"])
    assert ahead.wait(30) == 3
    assert "made" in capsys.readouterr().out
    ahead.end()


def test_what_nobody_waits_for_is_ended() -> None:
    ahead = Ahead(["sleep", "600"])
    started = time.monotonic()
    ahead.end()
    assert time.monotonic() - started < 30
    assert Ahead(["sleep", "600"]).wait(0.1) is None


def test_a_failing_command_fails_its_stage() -> None:
    outcome = run_stage("nothing", [sys.executable, "-c", "raise SystemExit(3)"], limit_s=30)
    assert (outcome.passed, outcome.note) == (False, "exit code 3")


def test_a_hanging_command_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    program = "import subprocess, sys, time; subprocess.Popen(['sleep', '600']); time.sleep(600)"
    outcome = run_stage("hang", [sys.executable, "-c", program], limit_s=0.5)
    assert (outcome.passed, outcome.note) == (False, "ended after its limit of 0.5 s")


def test_a_command_does_not_see_the_search_path_of_the_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    assert (
        run_command(
            [sys.executable, "-c", "import os; raise SystemExit('PYTHONPATH' in os.environ)"], limit_s=30
        )
        == 0
    )
