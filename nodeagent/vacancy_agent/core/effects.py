"""What the reclaim machines want done. One runner executes these, in the order given."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vacancy_agent.core.facts import Instant
    from vacancy_agent.core.job import JobId
    from vacancy_api.reasons import Reason


class ReclaimPhase(StrEnum):
    """What the machine decided last; published with the edges it answers."""

    WAITING = "waiting"
    STOOD_DOWN = "stood_down"
    PROCEEDING = "proceeding"


@dataclass(frozen=True, slots=True)
class CloseAdmission:
    """Admit nothing to the upstream from here on (`Ledger.close`)."""

    upstream: str
    trigger: Reason


@dataclass(frozen=True, slots=True)
class ReopenAdmission:
    """The reclaim ended (`Ledger.reopen`)."""

    upstream: str


@dataclass(frozen=True, slots=True)
class CancelWork:
    """Cut these jobs now; `reason` is what a borrower without response headers is told."""

    upstream: str
    jobs: tuple[JobId, ...]
    reason: Reason


@dataclass(frozen=True, slots=True)
class Unload:
    """Ask the upstream to unload, and report by `unload_result` with the same attempt number."""

    upstream: str
    attempt: int
    deadline: Instant


@dataclass(frozen=True, slots=True)
class PublishPhase:
    """The decision, with the instants of the edges it answers."""

    upstream: str
    phase: ReclaimPhase
    edges: tuple[Instant, ...]
    at: Instant


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Call `tick` at this instant or a little later."""

    upstream: str
    at: Instant


@dataclass(frozen=True, slots=True)
class ReportReclaimed:
    """The upstream showed that it let go, or did not in time. Only changes are reported."""

    upstream: str
    shown: bool

    @property
    def reason(self) -> str:
        """Reason of the condition `Reclaimed`."""
        return "Reclaimed" if self.shown else "UnloadNotConfirmed"


Effect = CloseAdmission | ReopenAdmission | CancelWork | Unload | PublishPhase | WakeAt | ReportReclaimed
Effects = tuple[Effect, ...]
