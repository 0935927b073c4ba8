"""The give-back machine of one upstream: edges, ends and deadlines in, effects out.

Two small automata run side by side, because the work of an upstream and the unloading of its model end at
different times: `WORK_MOVES` (idle, waiting) and `UNLOAD_MOVES` (idle, running, running again after). The
first edge fixes the deadline; later ones join the reclaim that waits and never extend it. Admission to the
upstream is closed from the first edge until both automata are idle, so that no job can slip in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from vacancy_agent.core.effects import (
    CancelWork,
    CloseAdmission,
    PublishPhase,
    ReclaimPhase,
    ReopenAdmission,
    ReportReclaimed,
    Unload,
    WakeAt,
)
from vacancy_agent.core.facts import Instant
from vacancy_agent.core.settings import Dialect, OnOwnerReturn
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vacancy_agent.core.effects import Effect, Effects
    from vacancy_agent.core.job import JobId
    from vacancy_agent.core.settings import UpstreamSettings

UNLOAD_DEADLINE = 10.0
"""Seconds an upstream has to show that it let go."""
UNLOADS = frozenset({Dialect.OLLAMA, Dialect.COMFYUI})
"""Dialects that can be asked to unload, and that show it."""


class Work(StrEnum):
    """State of the reclaim of work."""

    IDLE = "idle"
    WAITING = "waiting"


class Unloading(StrEnum):
    """State of the reclaim of memory."""

    IDLE = "idle"
    RUNNING = "running"
    RUNNING_AGAIN_AFTER = "running_again_after"
    """Another reclaim proceeded meanwhile: ask once more when this attempt ended."""


WORK_MOVES: Mapping[Work, frozenset[Work]] = {
    Work.IDLE: frozenset({Work.WAITING}),
    Work.WAITING: frozenset({Work.IDLE}),
}
UNLOAD_MOVES: Mapping[Unloading, frozenset[Unloading]] = {
    Unloading.IDLE: frozenset({Unloading.RUNNING}),
    Unloading.RUNNING: frozenset({Unloading.IDLE, Unloading.RUNNING_AGAIN_AFTER}),
    Unloading.RUNNING_AGAIN_AFTER: frozenset({Unloading.RUNNING}),
}


class ImpossibleMoveError(Exception):
    """A bug: the machine was about to leave its table."""


@dataclass(slots=True)
class _Pending:
    """A reclaim of work that waits."""

    trigger: Reason
    """Of the first edge: what a borrower is told."""
    deadline: Instant | None
    jobs: set[JobId] = field(default_factory=set)
    edges: list[Instant] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    """Resources whose pressure rose."""
    stopped: bool = False
    """Lending was stopped at the machine."""

    def add(self, trigger: Reason, jobs: Iterable[JobId], now: Instant, resource: str | None) -> None:
        """Answer one more edge."""
        self.edges.append(now)
        self.jobs.update(jobs)
        self.stopped |= trigger is Reason.LENDING_DISABLED
        if resource is not None:
            self.refused.add(resource)


class UpstreamReclaim:
    """The machine of one upstream."""

    def __init__(self, settings: UpstreamSettings) -> None:
        self.settings = settings
        self.work = Work.IDLE
        self.unloading = Unloading.IDLE
        self.phase: ReclaimPhase | None = None
        """The decision published last."""
        self.since: Instant | None = None
        self.claim: bool | None = None
        """What `ReportReclaimed` said last."""
        self._pending: _Pending | None = None
        self._attempt = 0
        self._unload_deadline: Instant | None = None

    @property
    def refused(self) -> frozenset[str]:
        """Resources whose pressure the waiting reclaim answers."""
        return frozenset(self._pending.refused if self._pending else ())

    @property
    def paused(self) -> bool:
        """The waiting reclaim answers that lending was stopped at the machine."""
        return self._pending is not None and self._pending.stopped

    @property
    def deadline(self) -> Instant | None:
        """When `tick` has something to do next."""
        waits = self._pending.deadline if self._pending else None
        return min((at for at in (waits, self._unload_deadline) if at is not None), default=None)

    def edge(
        self, trigger: Reason, jobs: Iterable[JobId], now: Instant, *, resource: str | None = None
    ) -> Effects:
        """The owner returned, the owner's work pressed on `resource`, or lending was stopped at the machine.

        Args:
            trigger: `owner_active`, `resource_pressured` or `lending_disabled`.
            jobs: the upstream's jobs that are under way (not held) at the edge.
            now: when.
            resource: the pressed resource.
        """
        if self._pending is not None:
            self._pending.add(trigger, jobs, now, resource)
            return (self._publish(ReclaimPhase.WAITING, self._pending, now),)
        pending = _Pending(trigger, self._deadline_of(now))
        pending.add(trigger, jobs, now, resource)
        if not self._has_task(pending):
            return ()
        self._pending = pending
        self._move_work(Work.WAITING)
        closed = CloseAdmission(self.settings.name, trigger)
        if self.settings.on_owner_return is OnOwnerReturn.CANCEL or not pending.jobs:
            return (closed, *self._proceed(pending, now))
        published = self._publish(ReclaimPhase.WAITING, pending, now)
        wake = () if pending.deadline is None else (WakeAt(self.settings.name, pending.deadline),)
        return (closed, published, *wake)

    def job_ended(self, job: JobId, now: Instant) -> Effects:
        """A job left forwarding and tracking: it was released, or it is held, which defers nothing."""
        pending = self._pending
        if pending is None or job not in pending.jobs:
            return ()
        pending.jobs.discard(job)
        return () if pending.jobs else self._proceed(pending, now)

    def stand_down(self, now: Instant) -> Effects:
        """The trigger is gone by admission's own checks: spare the work, unload nothing."""
        pending = self._pending
        if pending is None:
            return ()
        self._end()
        return (self._publish(ReclaimPhase.STOOD_DOWN, pending, now), *self._reopened())

    def tick(self, now: Instant) -> Effects:
        """Look at the deadlines."""
        effects: list[Effect] = []
        pending = self._pending
        if pending is not None and pending.deadline is not None and now >= pending.deadline:
            effects += self._proceed(pending, now)
        if self._unload_deadline is not None and now >= self._unload_deadline:
            effects += self._unload_ended(now, shown=False)
        return tuple(effects)

    def unload_result(self, attempt: int, now: Instant, *, shown: bool) -> Effects:
        """The runner's report on `Unload`; a late showing still counts, a late failure does not."""
        if attempt == self._attempt and self.unloading is not Unloading.IDLE:
            return self._unload_ended(now, shown=shown)
        return self._report(shown=True) if shown and self.claim is False else ()

    def _deadline_of(self, now: Instant) -> Instant | None:
        if self.settings.on_owner_return is OnOwnerReturn.FINISH:
            return Instant(now + self.settings.completion_timeout)
        return Instant(now + self.settings.drain_timeout)

    def _unloads(self) -> bool:
        return self.settings.yield_on_veto and self.settings.dialect in UNLOADS

    def _has_task(self, pending: _Pending) -> bool:
        """Neither finish mode nor an idle upstream has anything to do where nothing is unloaded."""
        cuts = self.settings.on_owner_return is not OnOwnerReturn.FINISH and bool(pending.jobs)
        return cuts or self._unloads()

    def _proceed(self, pending: _Pending, now: Instant) -> Effects:
        self._end()
        effects: list[Effect] = [self._publish(ReclaimPhase.PROCEEDING, pending, now)]
        if pending.jobs and self.settings.on_owner_return is not OnOwnerReturn.FINISH:
            effects.append(CancelWork(self.settings.name, tuple(sorted(pending.jobs)), pending.trigger))
        if self._unloads():
            effects += self._ask_to_unload(now)
        return (*effects, *self._reopened())

    def _end(self) -> None:
        self._pending = None
        self._move_work(Work.IDLE)

    def _reopened(self) -> Effects:
        """Admission opens when neither automaton is at work."""
        busy = self._pending is not None or self.unloading is not Unloading.IDLE
        return () if busy else (ReopenAdmission(self.settings.name),)

    def _ask_to_unload(self, now: Instant) -> Effects:
        if self.unloading is Unloading.RUNNING_AGAIN_AFTER:
            return ()
        if self.unloading is Unloading.RUNNING:
            self._move_unloading(Unloading.RUNNING_AGAIN_AFTER)
            return ()
        self._move_unloading(Unloading.RUNNING)
        return self._attempt_unload(now)

    def _attempt_unload(self, now: Instant) -> Effects:
        self._attempt += 1
        self._unload_deadline = deadline = Instant(now + UNLOAD_DEADLINE)
        return (Unload(self.settings.name, self._attempt, deadline), WakeAt(self.settings.name, deadline))

    def _unload_ended(self, now: Instant, *, shown: bool) -> Effects:
        self._unload_deadline = None
        report = self._report(shown=shown)
        if self.unloading is Unloading.RUNNING_AGAIN_AFTER:
            self._move_unloading(Unloading.RUNNING)
            return (*report, *self._attempt_unload(now))
        self._move_unloading(Unloading.IDLE)
        return (*report, *self._reopened())

    def _report(self, *, shown: bool) -> Effects:
        if self.claim is shown:
            return ()
        self.claim = shown
        return (ReportReclaimed(self.settings.name, shown),)

    def _publish(self, phase: ReclaimPhase, pending: _Pending, now: Instant) -> PublishPhase:
        if phase is not self.phase or phase is not ReclaimPhase.WAITING:
            self.since = now
        self.phase = phase
        return PublishPhase(self.settings.name, phase, tuple(pending.edges), now)

    def _move_work(self, to: Work) -> None:
        if to not in WORK_MOVES[self.work]:
            raise ImpossibleMoveError(self.work, to)
        self.work = to

    def _move_unloading(self, to: Unloading) -> None:
        if to not in UNLOAD_MOVES[self.unloading]:
            raise ImpossibleMoveError(self.unloading, to)
        self.unloading = to
