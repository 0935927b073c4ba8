"""One program out of one Go module.

Invariant: a program in the cache is whole. It is built under another name and renamed, so a build that is
interrupted leaves nothing that looks done; Go's own caches keep what was compiled, so the next build goes on
from there. Two builds of one thing at once would compile everything twice: the second waits.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from golang.places import cache
from golang.say import BuildError, lasted, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from golang.toolchain import Go

PROGRESS_S = 15.0
LOG_LINES = 25


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be built. `module`: the directory of its go.mod; `label`: how it is called on the way."""

    module: Path
    package: str
    output: Path
    ldflags: str
    label: str
    who: str
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    """What the build needs besides the toolchain's own."""


@contextmanager
def alone(name: str, who: str) -> Iterator[None]:
    """Nobody else builds what `name` stands for."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another build", who)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def enough_disk(needed: int) -> None:
    """Say it before minutes are spent.

    Raises:
        BuildError: fewer bytes are free.
    """
    free = shutil.disk_usage(cache()).free
    if free < needed:
        raise BuildError(
            f"{free >> 20} MiB free in {cache()}; Go's caches and the programs need about {needed >> 30} GiB"
        )


def compile_program(go: Go, work: Work) -> None:
    """Build it.

    Raises:
        BuildError: it could not be built; the message ends with what Go said.
    """
    work.output.parent.mkdir(parents=True, exist_ok=True)
    partial = work.output.with_name(f".{work.output.name}.partial")
    command = ["nice", str(go.program), "build", "-v", "-buildvcs=false", *work.options]
    command += [f"-ldflags={work.ldflags}", "-o", str(partial), work.package]
    started = time.monotonic()
    with subprocess.Popen(
        command,
        cwd=work.module,
        env={**go.environment(), **(work.environment or {})},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        lines = _watch(process.stderr, work, started)
    if process.returncode:
        raise BuildError(f"{work.label} could not be built:\n" + "\n".join(lines[-LOG_LINES:]))
    partial.replace(work.output)
    say(f"{work.label} done in {lasted(time.monotonic() - started)}", work.who)


def _watch(stream: IO[str], work: Work, started: float) -> list[str]:
    """Read what Go prints, one line a package or a download, and say how far it is."""
    lines: list[str] = []
    done = threading.Event()

    def tell() -> None:
        while not done.wait(PROGRESS_S):
            fetched = sum(line.startswith("go: downloading") for line in lines)
            compiled = len(lines) - fetched
            so_far = lasted(time.monotonic() - started)
            say(f"{work.label}: {fetched} modules fetched, {compiled} packages compiled, {so_far}", work.who)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        lines.extend(line.rstrip() for line in stream)
    finally:
        done.set()
        teller.join()
    return lines
