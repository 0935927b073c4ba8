"""What an upstream showed of the model it holds, by dialect: what a residency credit is proved from.

Usage: `Board.set_residency(upstream, Ready(shown, at))`, `at`: when the question was sent. Times in here are
on the agent's own clock; whoever reads a server's answer converts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vacancy_agent.core.facts import Instant, MiB


@dataclass(frozen=True, slots=True)
class SlotsShown:
    """llamacpp: its slots. A server without any to show, asleep or in router mode is never idle here."""

    idle: bool
    why: str = "the server is not idle"
    """Why it is not, for people."""
    held: bool = True
    """It holds its model at all (asleep and router: no)."""


@dataclass(frozen=True, slots=True)
class ModelShown:
    """ollama: one model of `/api/ps`."""

    name: str
    """In the one spelling that names are compared by."""
    digest: str
    context: int | None
    """Tokens; None: this server does not tell."""
    expires: Instant | None
    """When it goes if nobody asks for it; None: it could not be read."""
    size: int
    size_vram: int
    """Bytes, as `size`."""

    @property
    def on_gpu(self) -> bool:
        """All of it is on cards."""
        return self.size_vram >= self.size


@dataclass(frozen=True, slots=True)
class ModelsShown:
    """ollama: everything it holds."""

    models: tuple[ModelShown, ...] = ()

    def named(self, name: str | None) -> tuple[ModelShown, ...]:
        """The rows of one model."""
        return tuple(model for model in self.models if model.name == name)


@dataclass(frozen=True, slots=True)
class PoolShown:
    """comfyui: memory that its allocator holds and reuses for the next job."""

    held: MiB | None
    """None: it computes on no card, on several, or on one whose figure means something else."""
    why: str = ""
    """Why it is None, for people."""


Shown = SlotsShown | ModelsShown | PoolShown
