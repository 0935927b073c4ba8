"""Builds the programs from their Go modules, each once per set of pinned versions.

Invariant: a program in the cache is whole. It is built under another name and renamed, so a build that is
interrupted leaves nothing that looks done; Go's own caches keep what was compiled, so the next build goes on
from there. Two builds at once would compile everything twice and thrash a small machine: the second waits.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import threading
import time
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from kubes.places import HELM, PROGRAMS, cache, find, folder, version
from kubes.say import KubeError, lasted, say
from kubes.toolchain import Go, find_go

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

PROGRESS_S = 15.0
NEEDED_DISK_BYTES = 6 << 30
LOG_LINES = 25
_VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")


def build(names: Sequence[str]) -> dict[str, Path]:
    """Build what is not there yet.

    Returns:
        Each name with its program.

    Raises:
        KubeError: Something is missing, or a build failed.
    """
    if any(find(name) is None for name in names):
        with _alone():
            lacking = [name for name in names if find(name) is None]
            if lacking:
                _build_all(lacking)
    found = {name: find(name) for name in names}
    return {name: path for name, path in found.items() if path is not None}


@contextmanager
def _alone() -> Iterator[None]:
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "build.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another build")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_all(names: Sequence[str]) -> None:
    free = shutil.disk_usage(cache()).free
    if free < NEEDED_DISK_BYTES:
        raise KubeError(f"{free >> 20} MiB free in {cache()}; Go's caches and the programs need about 6 GiB")
    go = find_go()
    started = time.monotonic()
    say(f"building {', '.join(names)} into {cache()}: minutes when nothing is cached, and only once")
    for number, name in enumerate(names, 1):
        _build_one(go, name, f"[{number}/{len(names)}] {name}")
    say(f"built in {lasted(time.monotonic() - started)}")


def _build_one(go: Go, name: str, label: str) -> None:
    program = PROGRAMS[name]
    place = folder(program.module)
    place.mkdir(parents=True, exist_ok=True)
    partial = place / f".{name}.partial"
    command = [
        "nice",
        str(go.program),
        "build",
        "-v",
        "-buildvcs=false",
        "-trimpath",
        f"-ldflags={_flags(name)}",
    ]
    command += ["-o", str(partial), program.package]
    started = time.monotonic()
    say(f"{label} {version(name)}")
    with subprocess.Popen(
        command,
        cwd=program.module,
        env=go.environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        lines = _watch(process.stderr, label, started)
    if process.returncode:
        raise KubeError(f"{label} could not be built:\n" + "\n".join(lines[-LOG_LINES:]))
    partial.replace(place / name)
    say(f"{label} done in {lasted(time.monotonic() - started)}")


def _watch(stream: IO[str], label: str, started: float) -> list[str]:
    """Read what Go prints, one line a package or a download, and say how far it is."""
    lines: list[str] = []
    done = threading.Event()

    def tell() -> None:
        while not done.wait(PROGRESS_S):
            fetched = sum(line.startswith("go: downloading") for line in lines)
            say(
                f"{label}: {fetched} modules fetched, {len(lines) - fetched} packages compiled, "
                f"{lasted(time.monotonic() - started)}"
            )

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        lines.extend(line.rstrip() for line in stream)
    finally:
        done.set()
        teller.join()
    return lines


def _flags(name: str) -> str:
    """Smaller programs; and without its version Kubernetes calls itself v0.0.0, which clients trip over."""
    if PROGRAMS[name].module == HELM:
        return f"-s -w -X helm.sh/helm/v4/internal/version.version={version(name)}"
    kubernetes = version("kube-apiserver")
    major, minor = kubernetes.removeprefix("v").split(".")[:2]
    facts = {"gitVersion": kubernetes, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    values = [f"-X {package}.{key}={value}" for package in _VERSION_PACKAGES for key, value in facts.items()]
    return " ".join(["-s", "-w", *values])
