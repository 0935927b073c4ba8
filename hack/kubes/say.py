"""Words of `hack/kube`."""

from __future__ import annotations

from golang.say import BuildError, lasted
from golang.say import say as said

__all__ = ["KubeError", "lasted", "say"]
KubeError = BuildError


def say(message: str) -> None:
    """One line."""
    said(message, "kube")
