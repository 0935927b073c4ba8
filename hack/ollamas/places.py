"""Which Ollama there is and where: the one that VACANCY_OLLAMA names, else what `hack/ollama build` made.

Rejected: PATH. A machine's own Ollama may be of any age, and the tests know what the pinned one does.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from golang.places import cache

MODULE = Path(__file__).resolve().parent
PACKAGE = "github.com/ollama/ollama"
HEADERS = {
    "nlohmann-json3-dev": Path("/usr/include/nlohmann/json.hpp"),
    "libstb-dev": Path("/usr/include/stb/stb_image.h"),
}
"""Debian packages with a header of each: the module leaves out its own copies."""


def version() -> str:
    """The version that go.mod pins, such as v0.17.4."""
    found = re.search(rf"^\s*{PACKAGE} (v\S+)", (MODULE / "go.mod").read_text("utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def folder() -> Path:
    """Where it is kept: another pin is another directory."""
    pins = (MODULE / "go.mod").read_bytes() + (MODULE / "go.sum").read_bytes()
    return cache() / f"ollama-{version()}-{hashlib.sha256(pins).hexdigest()[:8]}"


def find() -> Path | None:
    """The program, or None where it was not built and nothing stands in for it."""
    named = os.environ.get("VACANCY_OLLAMA")
    program = Path(named).absolute() if named else folder() / "ollama"
    return program if os.access(program, os.X_OK) else None
