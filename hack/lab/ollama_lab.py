"""A real Ollama for tests: the program of `hack/ollama build`, on processors, with models of random weights.

Models: `tiny` (answers in milliseconds), `small` (27 million weights: some tens of tokens a second, seconds
over a prompt of a thousand words) and `wide`: `tiny` with `num_ctx` set by its Modelfile, so each displaces
the other. They are put into a store once; every server after that starts on it in half a second.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lab.tiny_gguf import SLOW, TINY, cache_dir, ensure_model
from ollamas.places import find, folder

MODELFILES = {
    "tiny": (TINY, ""),
    "small": (SLOW, ""),
    "wide": (TINY, "PARAMETER num_ctx 8192\n"),
}
START_DEADLINE_S = 60.0
STOP_DEADLINE_S = 10.0


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


class OllamaLab:
    """One running server. `url` has no trailing slash; `log` is the path of what the server printed."""

    def __init__(self, options: OllamaOptions | None = None, store: Path | None = None) -> None:
        self.options = options or OllamaOptions()
        self.port = self.options.port or _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = tempfile.TemporaryDirectory(prefix="ollama-lab-")
        self.log = Path(self._folder.name) / "server.log"
        self._store = store
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def start(self) -> None:
        """Start the server and wait until it answers.

        Raises:
            RuntimeError: it ended or did not answer in time; the message holds its log's end.
        """
        program = find()
        assert program is not None, missing()
        command = [str(program), "serve"]
        if shutil.which("setpriv"):  # ends with the process that started it, also where that is killed
            command = ["setpriv", "--pdeathsig", "KILL", *command]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=self._environment(),
            )
        self._wait_answering()

    def stop(self) -> None:
        """End the server with its runners; its log goes too."""
        self.kill(signal.SIGTERM)
        self._folder.cleanup()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End the server by that signal, and its runners with it; the address can be served again."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_DEADLINE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def restart(self) -> None:
        """Replace the process by a new one at the same address."""
        self.kill()
        self.start()

    def ask(self, method: str, path: str, document: object = None, within: float = 60.0) -> Any:
        """One request, past the agent; the decoded answer."""
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        with urllib.request.urlopen(request, timeout=within) as answer:
            return json.load(answer)

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

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": self._folder.name,
            "OLLAMA_HOST": f"127.0.0.1:{self.port}",
            "OLLAMA_MODELS": str(self._store or ensure_store()),
            "OLLAMA_NOPRUNE": "1",
            "OLLAMA_KEEP_ALIVE": self.options.keep_alive,
            "OLLAMA_NUM_PARALLEL": str(self.options.parallel),
        }

    def _wait_answering(self) -> None:
        deadline = time.monotonic() + START_DEADLINE_S
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                break
            with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                self.ask("GET", "/api/version", within=2.0)
                return
            time.sleep(0.05)
        tail = self.log.read_text(errors="replace")[-2000:]
        self.kill()
        raise RuntimeError(f"Ollama did not answer at {self.url}:\n{tail}")


@contextlib.contextmanager
def ollama_server(parallel: int = 1, keep_alive: str = "5m", port: int = 0) -> Iterator[OllamaLab]:
    """A running server for the length of the block."""
    lab = OllamaLab(OllamaOptions(parallel, keep_alive, port))
    try:
        lab.start()
        yield lab
    finally:
        lab.stop()


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
    lab = OllamaLab(store=store)
    try:
        lab.start()
        for name, (path, rest) in weights.items():
            modelfile = store / "Modelfile"
            modelfile.write_text(f"FROM {path}\n{rest}")
            subprocess.run(
                [str(program), "create", name, "-f", str(modelfile)],
                env=lab._environment(),  # noqa: SLF001 - of this module
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=True,
            )
            modelfile.unlink()
    finally:
        lab.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
