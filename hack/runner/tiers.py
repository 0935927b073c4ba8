"""The tiers of tests: which marks belong to which, and why pytest could not run some tests."""

from __future__ import annotations

import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runner.ahead import Ahead
from runner.needs import COMPONENT_NEEDS, OLLAMA_NEEDS, Need, install_missing
from runner.stage import Outcome, run_command

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTS = "component or logind or llama or ollama"
BUILD_LIMIT_S = 1500.0
NOTHING_COLLECTED = 5
HANG = ("-o", "faulthandler_timeout=300")
"""A test that hangs shows where, long before the tier reaches its limit."""


@dataclass(frozen=True, slots=True)
class Tier:
    """One run of pytest."""

    name: str
    marks: str
    limit_s: float
    needs: tuple[Need, ...] = ()
    prepare: tuple[str, ...] = ()
    """A command that makes what the tests need; where it fails, they say themselves what is missing."""
    ahead: bool = False
    """It takes minutes and is started before all stages."""

    def start(self) -> Ahead | None:
        """What is made ahead of the tier, under way."""
        if not self.ahead:
            return None
        install_missing(self.needs)
        return Ahead(self.prepare)


TIERS = (
    Tier("unit", f"not ({PARTS} or kube or slow)", 600.0),
    Tier(
        "component",
        f"({PARTS}) and not kube and not slow",
        2700.0,
        COMPONENT_NEEDS + OLLAMA_NEEDS,
        ("hack/ollama", "build"),
        ahead=True,
    ),
    Tier("control", "kube and not slow", 1200.0, COMPONENT_NEEDS, ("hack/kube", "build")),
    Tier("slow", "slow", 7200.0, COMPONENT_NEEDS),
)


def run_tier(tier: Tier, pytest_args: Sequence[str], *, strict: bool, ahead: Ahead | None = None) -> Outcome:
    """Run one tier and read back which tests were skipped, and why.

    Args:
        tier: which tests.
        pytest_args: what the caller adds; a selection may leave the tier empty.
        strict: an unselected tier without a single test is then a failure too.
        ahead: what `tier.start` started.
    """
    started = time.monotonic()
    install_missing(tier.needs)
    if ahead is not None:
        ahead.wait(BUILD_LIMIT_S)
    elif tier.prepare and strict:
        run_command(tier.prepare, limit_s=BUILD_LIMIT_S)
    print(f"\n--- {tier.name}: pytest -m '{tier.marks}' {' '.join(pytest_args)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="vacancy-test-") as scratch:
        report = Path(scratch) / "report.xml"
        argv = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-m",
            tier.marks,
            f"--junitxml={report}",
            *HANG,
            *pytest_args,
        ]
        code = run_command(argv, limit_s=tier.limit_s)
        skipped = _skip_reasons(report)
    seconds = time.monotonic() - started
    if code == NOTHING_COLLECTED and not strict:
        return Outcome(tier.name, passed=True, seconds=seconds, note="no test selected")
    return Outcome(tier.name, code == 0, seconds, _note(code, tier), skipped)


def _note(code: int | None, tier: Tier) -> str:
    if code is None:
        return f"ended after its limit of {tier.limit_s:g} s"
    return {0: "", NOTHING_COLLECTED: "no test at all"}.get(code, f"pytest's exit code {code}")


def _skip_reasons(report: Path) -> list[str]:
    """Each reason once, with how many tests it kept from running. An expected failure is not a skip."""
    if not report.exists():
        return []
    skips = ET.parse(report).iterfind(".//skipped[@type='pytest.skip']")  # noqa: S314 (pytest wrote it a moment ago)
    reasons = Counter(skip.get("message", "no reason given") for skip in skips)
    return [f"{reason} ({count} test{'s' if count > 1 else ''})" for reason, count in reasons.items()]
