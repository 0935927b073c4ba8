"""The runners of a stand-in for Ollama: what loads, reloads, expires and unloads when.

Taken from what 0.17.4 was seen doing: one runner a model; other runner options load it anew once nobody uses
it; a keep-alive starts when the last request ends, also where its client left; an unload answers at once and
lets the requests of the runner end; the work on a prompt goes on for a client that has left.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

MIB = 1 << 20
RELOADING = ("num_ctx", "num_batch", "num_gpu", "main_gpu", "use_mmap", "num_thread", "draft_num_predict")
FOREVER_S = 1e10


@dataclass(slots=True)
class Model:
    """A model of the store. `size` is what a runner of it takes with `default_ctx` tokens, bytes."""

    name: str
    digest: str
    size: int
    num_ctx: int | None = None
    """What its Modelfile sets."""


@dataclass(slots=True)
class Behaviour:
    """What the server does; each can be put to `/_standin/behaviour` by its name."""

    load_s: float = 0.02
    ps_blocks: bool = False
    """`/api/ps` waits while a model loads (some releases)."""
    ps: str = "ok"
    """`ok`, `hangs`, or `broken`: an answer that is no JSON."""
    tokens: int = 5
    """Of a request that does not say `num_predict`."""
    every_s: float = 0.0
    """Between two tokens."""
    prompt_s: float = 0.0
    """Work on the prompt, during which nobody notices that the client left."""
    burns: bool = False
    """A process of the server's tree uses a whole core while it works."""
    default_ctx: int = 4096
    parallel: int = 1
    """Slots of a runner; `context_length` shows the contexts of all of them together."""
    keep_alive_s: float = 300.0
    unload: str = "ok"
    """`ok`; `stays`: answers as if, and the model stays listed; `hangs`: no answer to the POST."""
    on_card: float = 1.0
    """Part of a runner's size that fits on the card."""


@dataclass(slots=True, eq=False)
class Runner:
    """A loaded model."""

    model: Model
    options: dict[str, Any]
    context_length: int
    size: int
    size_vram: int
    keep_alive: float
    expires_at: float
    users: int = 0
    stuck: bool = False
    """It was unloaded and stays listed ("Stopping...")."""
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    def row(self) -> dict[str, Any]:
        """As `/api/ps` lists it."""
        return {
            "name": self.model.name,
            "model": self.model.name,
            "size": self.size,
            "digest": self.model.digest,
            "details": {"format": "gguf", "family": "llama", "families": ["llama"]},
            "expires_at": timestamp(self.expires_at),
            "size_vram": self.size_vram,
            "context_length": self.context_length,
        }


class Runners:
    """Every runner of the server. `changed` is called whenever what is loaded has changed."""

    def __init__(self, models: dict[str, Model], changed: Callable[[int], None]) -> None:
        self.models = models
        self.behaviour = Behaviour()
        self.loaded: dict[str, Runner] = {}
        self.loads: list[str] = []
        """`NAME CONTEXT` of each load so far."""
        self.working = 0
        """Requests that are computed now, for somebody or for nobody."""
        self._changed = changed
        self._loading = asyncio.Lock()
        self._burner: subprocess.Popen[bytes] | None = None

    @property
    def vram(self) -> int:
        """Bytes on the card."""
        return sum(runner.size_vram for runner in self.loaded.values())

    async def ps(self) -> list[dict[str, Any]]:
        """What is listed."""
        if self.behaviour.ps_blocks:
            async with self._loading:
                pass
        self._expire()
        return [runner.row() for runner in self.loaded.values()]

    @asynccontextmanager
    async def use(
        self, model: Model, options: dict[str, Any], keep_alive: float | None
    ) -> AsyncIterator[Runner]:
        """A runner with these options for the length of one request."""
        runner = await self._runner(model, {name: options[name] for name in RELOADING if name in options})
        runner.users += 1
        runner.idle.clear()
        if keep_alive is not None:
            runner.keep_alive = keep_alive
        try:
            yield runner
        finally:
            runner.users -= 1
            runner.expires_at = time.time() + runner.keep_alive
            if not runner.users:
                runner.idle.set()
                self._expire()

    @asynccontextmanager
    async def work(self) -> AsyncIterator[None]:
        """Computing goes on for the length of the block."""
        self.working += 1
        if self.behaviour.burns and self._burner is None:
            self._burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])  # noqa: ASYNC220 - brief
        try:
            yield
        finally:
            self.working -= 1
            if not self.working:
                self.stop_burning()

    def stop_burning(self) -> None:
        """No process of ours computes any more."""
        if self._burner is not None:
            self._burner.kill()
            self._burner.wait()
            self._burner = None

    def unload(self, model: Model) -> None:
        """As keep_alive 0 without a prompt: whatever runs may end. Whatever comes of it, its time is over."""
        runner = self.loaded.get(model.name)
        if runner is None:
            return
        runner.stuck = self.behaviour.unload != "ok"
        runner.keep_alive = 0.0
        runner.expires_at = time.time()
        self._expire()

    def let_go(self) -> None:
        """Whatever stayed listed after an unload goes now."""
        self.loaded.clear()
        self._changed(self.vram)

    async def _runner(self, model: Model, options: dict[str, Any]) -> Runner:
        async with self._loading:
            self._expire()
            runner = self.loaded.get(model.name)
            wanted = {"num_ctx": model.num_ctx or self.behaviour.default_ctx, **options}
            if runner is not None and runner.options == wanted:
                return runner
            if runner is not None:
                if runner.users:
                    await runner.idle.wait()
                self.loaded.pop(model.name, None)
                self._changed(self.vram)
            await asyncio.sleep(self.behaviour.load_s)
            return self._load(model, wanted)

    def _load(self, model: Model, options: dict[str, Any]) -> Runner:
        rules = self.behaviour
        size = model.size + (options["num_ctx"] * rules.parallel - rules.default_ctx) * 8192
        size = max(size, model.size // 2)
        runner = Runner(
            model,
            options,
            options["num_ctx"] * rules.parallel,
            size,
            int(size * rules.on_card),
            rules.keep_alive_s,
            time.time() + rules.keep_alive_s,
        )
        self.loaded[model.name] = runner
        self.loads.append(f"{model.name} {runner.context_length}")
        self._changed(self.vram)
        return runner

    def _expire(self) -> None:
        now = time.time()
        gone = [
            name
            for name, runner in self.loaded.items()
            if not runner.users and not runner.stuck and runner.expires_at <= now
        ]
        for name in gone:
            del self.loaded[name]
        if gone:
            self._changed(self.vram)


def timestamp(seconds: float) -> str:
    """RFC 3339 with nine fraction digits, as Go writes it."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(min(seconds, FOREVER_S)))
    return f"{whole}.{int(seconds % 1 * 1e9):09d}Z"


def seconds(keep_alive: object) -> float | None:
    """A request's `keep_alive`: a number of seconds, or a Go duration; negative: for ever."""
    if keep_alive is None:
        return None
    if isinstance(keep_alive, str):
        units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
        unit = next((unit for unit in units if keep_alive.endswith(unit)), "")
        number = float(keep_alive.removesuffix(unit)) * units.get(unit, 1.0)
    else:
        number = float(str(keep_alive))
    return FOREVER_S if number < 0 else number
