"""Builds the programs from their Go modules, each once per set of pinned versions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from golang.compiling import Work, alone, compile_program, enough_disk
from golang.places import cache
from golang.toolchain import find_go
from kubes.places import HELM, PROGRAMS, find, folder, version
from kubes.say import lasted, say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from golang.toolchain import Go

NEEDED_DISK_BYTES = 6 << 30
_VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")


def build(names: Sequence[str]) -> dict[str, Path]:
    """Build what is not there yet.

    Returns:
        Each name with its program.

    Raises:
        KubeError: Something is missing, or a build failed.
    """
    if any(find(name) is None for name in names):
        with alone("build", "kube"):
            lacking = [name for name in names if find(name) is None]
            if lacking:
                _build_all(lacking)
    found = {name: find(name) for name in names}
    return {name: path for name, path in found.items() if path is not None}


def _build_all(names: Sequence[str]) -> None:
    enough_disk(NEEDED_DISK_BYTES)
    go = find_go()
    started = time.monotonic()
    say(f"building {', '.join(names)} into {cache()}: minutes when nothing is cached, and only once")
    for number, name in enumerate(names, 1):
        _build_one(go, name, f"[{number}/{len(names)}] {name}")
    say(f"built in {lasted(time.monotonic() - started)}")


def _build_one(go: Go, name: str, label: str) -> None:
    program = PROGRAMS[name]
    say(f"{label} {version(name)}")
    output = folder(program.module) / name
    work = Work(program.module, program.package, output, _flags(name), label, "kube", ("-trimpath",))
    compile_program(go, work)


def _flags(name: str) -> str:
    """Smaller programs; and without its version Kubernetes calls itself v0.0.0, which clients trip over."""
    if PROGRAMS[name].module == HELM:
        return f"-s -w -X helm.sh/helm/v4/internal/version.version={version(name)}"
    kubernetes = version("kube-apiserver")
    major, minor = kubernetes.removeprefix("v").split(".")[:2]
    facts = {"gitVersion": kubernetes, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    values = [f"-X {package}.{key}={value}" for package in _VERSION_PACKAGES for key, value in facts.items()]
    return " ".join(["-s", "-w", *values])
