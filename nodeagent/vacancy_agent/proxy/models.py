"""What the path of a request adds for upstreams that tell what they hold: credit, learned contexts, priors.

Invariant: only these upstreams have one (`Host.models`); the others' path asks once, when the proxy is made,
and never again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from vacancy_agent.core.facts import MemoryCapacity, MiB, Ready, Seconds
from vacancy_agent.core.gate import Ask
from vacancy_agent.core.priors import PriorKey
from vacancy_agent.core.settings import Dialect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_agent.core.board import Board
    from vacancy_agent.core.facts import Instant, WallTime
    from vacancy_agent.core.job import Job
    from vacancy_agent.core.verdict import Admit
    from vacancy_agent.proxy.host import Journalist
    from vacancy_dialects import RunnerAsk

LOOK_WITHIN = Seconds(1.0)
"""A request waits this long for the one look that may turn its refusal into a credit."""


class Watched(Protocol):
    """The observation of the upstream (`collect.holdings`)."""

    def soon(self) -> None:
        """What it holds has changed: look."""
        ...

    async def fresh(self, within: Seconds) -> None:
        """Wait for a look that begins after this call."""
        ...


@dataclass(frozen=True, slots=True)
class Applied:
    """The credit of the newest admission."""

    model: str | None
    why: str
    charged: MiB
    at: WallTime


class Models:
    """One upstream's."""

    def __init__(
        self, upstream: str, dialect: Dialect, board: Board, watched: Watched, tell: Journalist
    ) -> None:
        self.upstream = upstream
        self.watched = watched
        """Set anew when the observation starts anew."""
        self.applied: Applied | None = None
        """None: the newest admission was charged in full, and nothing was added to what is free."""
        self._board = board
        self._tell = tell
        self._names_models = dialect is Dialect.OLLAMA

    def ask(self, model: str | None, runner: RunnerAsk | None) -> Ask:
        """What the gate is asked."""
        if model is None or not self._names_models:
            return Ask(self.upstream, model, None, runner)
        return Ask(self.upstream, model, self._board.priors.of(self._key(model, runner)), runner)

    def admitted(self, job: Job, runner: RunnerAsk | None, verdict: Admit, wall: WallTime) -> None:
        """A job begins: it is measured, and its credit is told."""
        self.applied = None
        if verdict.relieved:
            self.applied = Applied(job.model, verdict.credit, verdict.charged, wall)
            self._tell(
                "credited",
                upstream=self.upstream,
                job=job.id,
                model=job.model,
                charged=verdict.charged,
                why=verdict.credit,
            )
        if job.model is not None and runner is not None:
            key = None if runner.other_options else self._key(job.model, runner)
            self._board.priors.began(key, self._free(job))
            self._board.contexts.began(self.upstream, job.model, runner)

    def ended(self, job: Job, runner: RunnerAsk | None, now: Instant, *, served: bool) -> None:
        """Its exchange is over. `served`: with a complete, successful reply."""
        if job.model is not None and runner is not None:
            self._board.contexts.ended(self.upstream, job.model, runner, now, served=served)
        self.watched.soon()

    def _key(self, model: str, runner: RunnerAsk | None) -> PriorKey:
        return PriorKey(self.upstream, model, None if runner is None else runner.num_ctx)

    def _free(self, job: Job) -> Mapping[str, MiB]:
        readings = ((name, self._board.capacity.get(name)) for name in job.resources)
        return {
            name: reading.value.free
            for name, reading in readings
            if isinstance(reading, Ready) and isinstance(reading.value, MemoryCapacity)
        }
