"""One step of `hack/test`: a command, its output as it comes, its time, its verdict."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
CLEAN_UP_S = 20.0


@dataclass(slots=True)
class Outcome:
    """How a stage ended."""

    name: str
    passed: bool
    seconds: float
    note: str = ""
    not_run: list[str] = field(default_factory=list)
    """What the stage could not run here, each line with what to install."""


def run_command(argv: Sequence[str], *, limit_s: float) -> int | None:
    """Run a command in a process group of its own, its output straight through.

    It sees the environment of a person's own call: without the search path that this runner was given.

    Returns:
        The exit code, or None when it was ended at `limit_s` seconds.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.Popen(argv, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, process_group=0)
    try:
        return process.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        end_group(process)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing of the group running; a command that still runs may first clean up after itself."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=CLEAN_UP_S)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_stage(name: str, argv: Sequence[str], *, limit_s: float) -> Outcome:
    """Run one check and judge it by its exit code."""
    print(f"\n--- {name}: {' '.join(argv)}", flush=True)
    started = time.monotonic()
    code = run_command(argv, limit_s=limit_s)
    note = {None: f"ended after its limit of {limit_s:g} s", 0: ""}.get(code, f"exit code {code}")
    return Outcome(name, code == 0, time.monotonic() - started, note)
