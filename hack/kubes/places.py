"""Which parts of Kubernetes there are, how each is made, and where the programs are.

Looked for in the directory that KUBEBUILDER_ASSETS names, then among what `hack/kube build` made. Rejected:
PATH, where a kubectl of any age may lie, which differs from its server in ways that look like our errors.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from golang.places import cache

HERE = Path(__file__).resolve().parent
KUBERNETES = HERE
"""Go module that pins etcd and every part of Kubernetes."""
HELM = HERE / "helm"
"""Go module that pins helm."""
CONTROL_PLANE = ("etcd", "kube-apiserver", "kubectl")


@dataclass(frozen=True, slots=True)
class Program:
    """One program: the Go module whose versions are pinned, and the package in it."""

    module: Path
    package: str


PROGRAMS = {
    "etcd": Program(KUBERNETES, "go.etcd.io/etcd/server/v3"),
    **{
        name: Program(KUBERNETES, f"k8s.io/kubernetes/cmd/{name}")
        for name in (
            "kube-apiserver",
            "kubectl",
            "kube-controller-manager",
            "kube-scheduler",
            "kubelet",
            "kube-proxy",
        )
    },
    "helm": Program(HELM, "helm.sh/helm/v4/cmd/helm"),
}


def version(name: str) -> str:
    """The version of a program that its module pins, such as v1.36.3."""
    program = PROGRAMS[name]
    for path, pinned in re.findall(r"^\s*(\S+) (v\S+)", _mod(program.module), re.MULTILINE):
        if f"{program.package}/".startswith(f"{path}/"):
            return str(pinned)
    raise AssertionError(f"{program.module}/go.mod pins no version of {name}")


def folder(module: Path) -> Path:
    """Where the programs of a module are kept: another pin is another directory."""
    pins = _mod(module).encode() + (module / "go.sum").read_bytes()
    name, main = ("helm", "helm") if module == HELM else ("kubernetes", "kube-apiserver")
    return cache() / f"{name}-{version(main)}-{hashlib.sha256(pins).hexdigest()[:8]}"


def _mod(module: Path) -> str:
    return (module / "go.mod").read_text(encoding="utf-8")


def _assets() -> Path | None:
    named = os.environ.get("KUBEBUILDER_ASSETS")
    return Path(named).absolute() if named else None


def find(name: str) -> Path | None:
    """The program, or None where it has not been built and nothing stands in for it."""
    assets = _assets()
    candidates = [assets / name] if assets else []
    candidates.append(folder(PROGRAMS[name].module) / name)
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return candidate
    return None


def missing(names: tuple[str, ...]) -> str | None:
    """Which programs are not there, or None."""
    lacking = [name for name in names if find(name) is None]
    return f"{', '.join(lacking)} not built" if lacking else None
