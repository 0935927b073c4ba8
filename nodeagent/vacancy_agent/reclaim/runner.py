"""Executes what the reclaim machine decides. It decides nothing itself.

Invariant: effects are executed in the order in which they came, within the call that caused them: between an
owner's edge and the closing of the borrowers' connections the loop does nothing else. Rejected: a queue and a
task, which put every other callback of the loop between the signal and the cut.

Cutting a job ends its exchange, which reports back here (`job_ended`) while the cut is still being executed.
Effects that this causes wait behind the ones under way.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from vacancy_agent.core import effects as on
from vacancy_agent.core.settings import OnOwnerReturn
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping

    from vacancy_agent.clock import Clock
    from vacancy_agent.core.board import Board
    from vacancy_agent.core.facts import Instant
    from vacancy_agent.core.job import JobId
    from vacancy_agent.core.ledger import Ledger
    from vacancy_agent.core.reclaim import Reclaims
    from vacancy_agent.core.settings import HostSettings


class Cutter(Protocol):
    """Cuts the connections of jobs."""

    def cut(self, job: JobId, reason: Reason) -> None:
        """End this job's exchange now; a job that has ended already is ignored."""
        ...


class Journalist(Protocol):
    """Where commitments are told: one line each."""

    def __call__(self, event: str, **facts: object) -> None:
        """Log `event` with its facts."""
        ...


class ReclaimRunner:
    """One for a host."""

    def __init__(
        self,
        reclaims: Reclaims,
        ledger: Ledger,
        cutter: Cutter,
        clock: Clock,
        tell: Journalist,
    ) -> None:
        self.reclaims = reclaims
        self._ledger = ledger
        self._cutter = cutter
        self._clock = clock
        self._tell = tell
        self._pending: deque[on.Effect] = deque()
        self._running = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.wake: Callable[[float, Callable[[], None]], asyncio.TimerHandle] | None = None
        """`loop.call_later` once the loop runs."""
        self.unload: Callable[[on.Unload], None] | None = None
        """`Unloads.start` once the loop runs."""
        self.left: Callable[[str], frozenset[JobId]] = lambda _upstream: frozenset()
        """`Tracks.held`: the held jobs of an upstream whose work goes on and can be stopped."""
        self.published: dict[str, on.PublishPhase] = {}
        """The last decision for each upstream, for `/status`."""

    @property
    def claims(self) -> Mapping[str, bool | None]:
        """What each upstream that was asked to unload showed (None: it is being asked)."""
        return self.reclaims.claims()

    def owner_returned(self, now: Instant) -> None:
        """The owner's veto rose."""
        self._run(self.reclaims.owner_edge(self._active, now))

    def lending_stopped(self, now: Instant) -> None:
        """Lending was switched off at this machine: give back what was admitted before."""
        self._run(self.reclaims.lending_edge(self._active, now))

    def resource_pressed(self, resource: str, board: Board, now: Instant) -> None:
        """The owner's load on a resource rose, or could not be read for too long."""
        veto = board.veto.engaged
        self._run(self.reclaims.pressure_edge(resource, self._active, now, veto=veto))

    def reconfigure(self, settings: HostSettings) -> None:
        """Take over new settings."""
        self._run(self.reclaims.reconfigure(settings))

    def job_ended(self, upstream: str, job: JobId, now: Instant) -> None:
        """A job was released, or is held now."""
        if self.reclaims.waits_for(upstream):  # mostly not, and this is the path of every request
            self._run(self.reclaims.job_ended(upstream, job, now))

    def recheck(self, board: Board, now: Instant) -> None:
        """After every sample: a wait whose trigger is gone stands down."""
        self._run(self.reclaims.recheck(board, now, self._clock.wall()))

    def unload_result(self, upstream: str, attempt: int, shown: bool) -> None:
        """What came of an `Unload`; a late showing counts, too."""
        self._run(self.reclaims.unload_result(upstream, attempt, self._clock.now(), shown=shown))

    def tick(self) -> None:
        """A deadline came."""
        self._run(self.reclaims.tick(self._clock.now()))

    def close(self) -> None:
        """Stop waiting for deadlines."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _active(self, upstream: str) -> frozenset[JobId]:
        """The jobs that are under way, and what goes on of those that are held, unless it may finish.

        Else whoever leaves before the reply to a submission would keep the card from its owner.
        """
        return self._ledger.active(upstream) | self._stoppable(upstream)

    def _stoppable(self, upstream: str) -> frozenset[JobId]:
        machine = self.reclaims.machines.get(upstream)
        finishes = machine is None or machine.settings.on_owner_return is OnOwnerReturn.FINISH
        return frozenset() if finishes else self.left(upstream)

    def _run(self, effects: Iterable[on.Effect]) -> None:
        self._pending.extend(effects)
        if self._running:
            return
        self._running = True
        try:
            while self._pending:
                self._execute(self._pending.popleft())
        finally:
            self._running = False

    def _execute(self, effect: on.Effect) -> None:
        match effect:
            case on.CloseAdmission(upstream, trigger):
                self._ledger.close(upstream, trigger)
            case on.ReopenAdmission(upstream):
                self._ledger.reopen(upstream)
            case on.CancelWork(upstream, jobs, reason):
                self._tell("reclaim cuts", upstream=upstream, jobs=len(jobs), reason=reason.value)
                for job in jobs:
                    self._cutter.cut(job, reason)
            case on.PublishPhase(upstream, phase, edges):
                self.published[upstream] = effect
                self._tell("reclaim", upstream=upstream, phase=phase.value, edges=len(edges))
                self._stop_left(upstream, phase)
            case on.WakeAt(upstream, at):
                self._wake_at(upstream, at)
            case on.ReportReclaimed(upstream):
                self._tell("reclaimed", upstream=upstream, reason=effect.reason)
            case on.Unload():
                self._unload(effect)

    def _stop_left(self, upstream: str, phase: on.ReclaimPhase) -> None:
        """What became a hold while the reclaim waited is not among the jobs that it cuts."""
        if phase is on.ReclaimPhase.PROCEEDING:
            for job in self._stoppable(upstream):
                self._cutter.cut(job, Reason.OWNER_ACTIVE)

    def _unload(self, effect: on.Unload) -> None:
        """Beside the loop's other work; before the loop runs nobody can, and the deadline says so."""
        if self.unload is not None:
            self.unload(effect)

    def _wake_at(self, upstream: str, at: Instant) -> None:
        if self.wake is None:
            return
        known = self._timers.pop(upstream, None)
        if known is not None:
            known.cancel()
        self._timers[upstream] = self.wake(max(0.0, at - self._clock.now()), self.tick)
