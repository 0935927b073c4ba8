"""Where programs that were built are kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache() -> Path:
    """Outside the tree: VACANCY_KUBE_CACHE (after what was built first), or a user's own cache."""
    named = os.environ.get("VACANCY_KUBE_CACHE")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "vacancy-kube"
