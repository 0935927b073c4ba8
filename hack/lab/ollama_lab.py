"""A real Ollama for tests: the program of `hack/ollama build`, on processors, with models of random weights.

Models: `tiny` (answers in milliseconds), `small` (27 million weights: some tens of tokens a second, seconds
over a prompt of a thousand words) and `wide`: `tiny` with `num_ctx` set by its Modelfile, so each displaces
the other. They are put into a store once; every server after that starts on it in half a second.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lab.server_part import START_DEADLINE_S, ServerPart
from lab.tiny_gguf import SLOW, TINY, cache_dir, ensure_model
from ollamas.places import find, folder

MODELFILES = {
    "tiny": (TINY, ""),
    "small": (SLOW, ""),
    "wide": (TINY, "PARAMETER num_ctx 8192\n"),
}


def missing() -> str | None:
    """What keeps the lab from running on this machine, or None."""
    return "the program was not built" if find() is None else None


@dataclass(frozen=True, slots=True)
class OllamaOptions:
    """How the server is started."""

    parallel: int = 1
    """Requests that one runner serves at a time."""
    keep_alive: str = "5m"
    port: int = 0
    """0: a free one."""


class OllamaLab(ServerPart):
    """One running server."""

    title, health = "ollama", "/api/version"

    def __init__(self, options: OllamaOptions | None = None, store: Path | None = None) -> None:
        self.options = options or OllamaOptions()
        super().__init__(self.options.port)
        self._store = store

    def command(self) -> list[str]:
        program = find()
        assert program is not None, missing()
        # With setpriv it ends with the process that started it, also where that is killed.
        parent = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        return [*parent, str(program), "serve"]

    def loaded(self) -> dict[str, Any]:
        """The rows of /api/ps by name."""
        return {row["name"]: row for row in self.ask("GET", "/api/ps")["models"]}

    def unload_all(self) -> None:
        """Leave it as it was found: nothing loaded."""
        for name in self.loaded():
            self.ask("POST", "/api/generate", {"model": name, "keep_alive": 0})
        deadline = time.monotonic() + START_DEADLINE_S
        while self.loaded() and time.monotonic() < deadline:
            time.sleep(0.02)

    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": self._folder.name,
            "OLLAMA_HOST": f"127.0.0.1:{self.port}",
            "OLLAMA_MODELS": str(self._store or ensure_store()),
            "OLLAMA_NOPRUNE": "1",
            "OLLAMA_KEEP_ALIVE": self.options.keep_alive,
            "OLLAMA_NUM_PARALLEL": str(self.options.parallel),
        }


@contextlib.contextmanager
def ollama_server(parallel: int = 1, keep_alive: str = "5m", port: int = 0) -> Iterator[OllamaLab]:
    """A running server for the length of the block."""
    with OllamaLab(OllamaOptions(parallel, keep_alive, port)) as lab:
        yield lab


def ensure_store() -> Path:
    """The store with all models; made on first use by a server of its own."""
    weights = {name: (ensure_model(shape), rest) for name, (shape, rest) in MODELFILES.items()}
    recipe = f"{folder().name} {[(path.name, rest) for path, rest in weights.values()]}"
    store = cache_dir() / f"ollama-{hashlib.sha256(recipe.encode()).hexdigest()[:8]}"
    with (cache_dir() / "ollama.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not store.exists():
            partial = Path(tempfile.mkdtemp(dir=cache_dir(), suffix=".part"))
            _fill(partial, weights)
            partial.rename(store)
    return store


def _fill(store: Path, weights: dict[str, tuple[Path, str]]) -> None:
    program = find()
    assert program is not None
    with OllamaLab(store=store) as lab:
        for name, (path, rest) in weights.items():
            modelfile = store / "Modelfile"
            modelfile.write_text(f"FROM {path}\n{rest}")
            subprocess.run(
                [str(program), "create", name, "-f", str(modelfile)],
                env=lab.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=True,
            )
            modelfile.unlink()
