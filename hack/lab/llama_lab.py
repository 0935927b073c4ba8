"""A real llama-server for tests, `hack/try` and `hack/bench`: llama.cpp's own server on random weights.

The server of the `xllamacpp` wheel is llama-server's code in a Python process. It runs in a process of its
own here, because what the agent asks about (who listens, how much CPU does that process use, was it replaced)
are questions about processes, and because a server in the test's process would share its lock and its fate.

    python hack/lab/llama_lab.py run --slots 2 --model slow     # in the foreground, prints the address
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lab.server_part import ServerPart
from lab.tiny_gguf import SLOW, TINY, ensure_model

MODELS = {"tiny": TINY, "slow": SLOW}


def missing() -> str | None:
    """What keeps the lab from running on this machine, or None."""
    absent = [name for name in ("xllamacpp", "gguf", "numpy") if importlib.util.find_spec(name) is None]
    return f"{', '.join(absent)} not installed" if absent else None


@dataclass(frozen=True, slots=True)
class LabOptions:
    """How the server is started; the names follow llama-server's own options."""

    model: str = "tiny"
    """`tiny`: about a millisecond a token. `slow`: seconds over a prompt of some thousand tokens."""
    slots: int = 1
    ctx: int = 4096
    """Context of each slot, tokens."""
    threads: int = 1
    metrics: bool = True
    slots_endpoint: bool = True
    api_key: str | None = None
    sleep_idle_seconds: int = -1
    embedding: bool = False
    """It answers /v1/embeddings; without, that is 501."""
    alias: str = "lab"
    port: int = 0
    """0: a free one. A fixed port serves for restarts at the same address."""


class LlamaLab(ServerPart):
    """One running server."""

    title, health = "llama-server", "/health"

    def __init__(self, options: LabOptions) -> None:
        self.options = options
        self.alias = options.alias
        super().__init__(options.port)

    def command(self) -> list[str]:
        model = ensure_model(MODELS[self.options.model])
        command = [sys.executable, __file__, "serve", "--port", str(self.port), "--model-path", str(model)]
        return [*command, "--options", json.dumps(asdict(self.options))]

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.options.api_key}"} if self.options.api_key else {}

    def get(self, path: str) -> Any:
        """Decoded JSON of a GET."""
        return self.ask("GET", path)

    def busy(self) -> int:
        """Slots that are processing right now. Each call delays how soon it notices a client that left."""
        return sum(slot["is_processing"] for slot in self.get("/slots"))


@contextlib.contextmanager
def llama_server(options: LabOptions | None = None) -> Iterator[LlamaLab]:
    """A running server for the length of the block."""
    with LlamaLab(options or LabOptions()) as lab:
        yield lab


def _serve(port: int, model: str, options: LabOptions) -> None:
    """The server's own process: it ends at SIGTERM, and when its parent is gone (end of its input)."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {options.alias}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = options.slots
    params.n_ctx = options.ctx * options.slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.endpoint_metrics = options.metrics
    params.endpoint_slots = options.slots_endpoint
    params.sleep_idle_seconds = options.sleep_idle_seconds
    params.embedding = options.embedding
    if options.embedding:
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.api_keys = [options.api_key] if options.api_key else []
    params.warmup = False
    params.ui = False
    server = xllamacpp.Server(params)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    sys.stdin.buffer.read()
    del server
    os._exit(0)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="llama_lab", description="A llama-server on random weights.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="start one and keep it until interrupted")
    run.add_argument("--model", choices=sorted(MODELS), default="tiny")
    run.add_argument("--slots", type=int, default=1)
    run.add_argument("--ctx", type=int, default=4096)
    run.add_argument("--port", type=int, default=0)
    serve = commands.add_parser("serve", help=argparse.SUPPRESS)
    serve.add_argument("--port", type=int, required=True)
    serve.add_argument("--model-path", required=True)
    serve.add_argument("--options", required=True)
    arguments = parser.parse_args(argv)
    if arguments.command == "serve":
        _serve(arguments.port, arguments.model_path, LabOptions(**json.loads(arguments.options)))
        return 0
    if why := missing():
        print(f"llama_lab: {why}; pip install xllamacpp gguf numpy", file=sys.stderr)
        return 1
    options = LabOptions(model=arguments.model, slots=arguments.slots, ctx=arguments.ctx, port=arguments.port)
    with llama_server(options) as lab, contextlib.suppress(KeyboardInterrupt):
        print(lab.url, flush=True)
        signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
