"""The machine that a figure was measured on: a ratio travels only with this line beside it."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path


def cpu_model() -> str:
    """The processor's own name, from /proc/cpuinfo."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def machine() -> dict[str, object]:
    """What goes into the machine line and the JSON file.

    Whether the interpreter is the distribution's matters: Debian's is built with PGO and LTO;
    that of a version manager mostly is not, and costs a fifth of the requests.
    """
    interpreter = Path(sys.base_prefix) / "bin" / "python3"
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count() or 0,
        "usable_cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "system_python": sys.base_prefix == "/usr" and interpreter.exists(),
    }


def machine_line(facts: dict[str, object]) -> str:
    """The same for a person."""
    origin = "the system's" if facts["system_python"] else "not the system's"
    return (
        f"machine: {facts['cpu']}, {facts['cores']} cores, Linux {facts['kernel']}, "
        f"Python {facts['python']} ({origin})"
    )
