"""What the listeners of one agent share: the board, the ledger, the jobs under way.

Invariant: one loop owns all of it. A request is decided, reserved and written to the journal within one turn
of that loop, so no other request can come between the question and the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from vacancy_agent.proxy.counters import AuthCounters, UpstreamCounters
from vacancy_agent.proxy.own_ids import OwnIds
from vacancy_agent.proxy.prompts import PromptIds
from vacancy_edge.comfy_clients import ClientIds

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from typing import Any

    from vacancy_agent.clock import Clock
    from vacancy_agent.core.board import Board
    from vacancy_agent.core.facts import Instant, ProcessIdentity, WallTime
    from vacancy_agent.core.gate_kept import Gate
    from vacancy_agent.core.job import JobId
    from vacancy_agent.core.ledger import Ledger
    from vacancy_agent.core.settings import AccessSettings
    from vacancy_agent.proxy.models import Models
    from vacancy_agent.proxy.prompts import Prompt, Tracked
    from vacancy_agent.proxy.request import Request
    from vacancy_agent.store.journal import Partition
    from vacancy_edge import BodyHelper, TokenTable


class Sampler(Protocol):
    """Capacity samples on demand."""

    def now(self, resource: str) -> bool:
        """Read this resource within the call (memory, cpu); False when it takes a probe."""
        ...

    def soon(self, resources: Iterable[str]) -> None:
        """Start a sample of each of these; any number of calls is answered by one sample."""
        ...

    async def fresh(self, resources: Iterable[str]) -> None:
        """Wait until each was sampled after its last job ended, 1 s at most."""
        ...


class Reclaiming(Protocol):
    """Hears that a job has left the stage."""

    def job_ended(self, upstream: str, job: JobId, now: Instant) -> None:
        """A job was released, or is held now."""
        ...


class Journalist(Protocol):
    """Where commitments are told: one line each."""

    def __call__(self, event: str, **facts: object) -> None:
        """Log `event` with its facts."""
        ...


def _nobody() -> None:
    """Nobody is told."""


def _at_once(call: Callable[[], None]) -> None:
    call()


@dataclass(slots=True, frozen=True)
class HeldSlot:
    """Where the journal has a held job."""

    partition: Partition
    slot: int
    started: WallTime
    prompt: Prompt | None = None


@dataclass(slots=True, eq=False)
class Used:
    """What one borrower used, counted in the path of a request."""

    requests: int = 0
    seconds: float = 0.0


@dataclass(slots=True, eq=False)
class Host:
    """One agent's state in the path of requests."""

    clock: Clock
    board: Board
    gate: Gate
    ledger: Ledger
    tokens: TokenTable
    access: AccessSettings
    sampler: Sampler
    tell: Journalist
    spawn: Callable[[Coroutine[Any, Any, None]], object]
    """Runs a coroutine in the agent's task group: an exception in it ends the agent."""
    reclaiming: Reclaiming
    held: Callable[[], None]
    """Told that a job is held: somebody has to look for its proof."""
    helper: BodyHelper
    """Reads bodies that are too large for the loop."""
    generation: int = 0
    """Rises with every configuration: what was decided under an older one is decided anew."""
    requests: dict[JobId, Request] = field(default_factory=dict)
    """The jobs whose exchange is under way."""
    held_slots: dict[JobId, HeldSlot] = field(default_factory=dict)
    counters: dict[str, UpstreamCounters] = field(default_factory=dict)
    auth: AuthCounters = field(default_factory=AuthCounters)
    used: dict[str, Used] = field(default_factory=dict)
    """What each borrower used since somebody last took it from here."""
    tracked: dict[JobId, Tracked] = field(default_factory=dict)
    """The jobs whose submission was answered, and whose prompt has not ended yet."""
    track: Callable[[], None] = _nobody
    """Told that a job is tracked: somebody has to look for its end."""
    in_turn: Callable[[Callable[[], None]], None] = _at_once
    """Judges a large body when its turn comes (`turns`)."""
    prompt_ids: PromptIds = field(default_factory=PromptIds)
    own_ids: OwnIds = field(default_factory=OwnIds)
    client_ids: ClientIds = field(default_factory=ClientIds)
    """Whose ComfyUI client ids are whose; a server is told from another by its target."""
    models: dict[str, Models] = field(default_factory=dict)
    """What is known of the upstreams that tell what they hold. A proxy takes its own when it is made."""
    processes: dict[str, ProcessIdentity] = field(default_factory=dict)
    """The process behind each upstream, where it is local and known."""

    def counters_of(self, upstream: str) -> UpstreamCounters:
        """The counters of an upstream; they outlive its listeners."""
        return self.counters.setdefault(upstream, UpstreamCounters())
