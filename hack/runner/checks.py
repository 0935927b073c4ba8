"""The checks: format, lint, types for both platforms, import contracts. A person can repeat each."""

from __future__ import annotations

import sys
from pathlib import Path

from runner.stage import Outcome, run_stage

LIMIT_S = 600.0
BIN = Path(sys.executable).parent

HACK = ("runner", "benches", "lab", "demo", "kubes", "ollamas", "golang")
CHECKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("format", ("ruff", "format", "--check")),
    ("lint", ("ruff", "check", "--quiet")),
    ("types linux", ("mypy", "--platform", "linux")),
    ("types win32", ("mypy", "--platform", "win32")),
    ("types hack", ("mypy", *(word for name in HACK for word in ("-p", name)))),
    ("imports", ("lint-imports",)),
)


def run_checks() -> list[Outcome]:
    """Run all of them, whatever fails."""
    return [
        run_stage(name, (str(BIN / program), *rest), limit_s=LIMIT_S) for name, (program, *rest) in CHECKS
    ]
