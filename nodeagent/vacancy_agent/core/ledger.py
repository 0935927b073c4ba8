"""The admission ledger: who holds which resource, and what ended only by proof.

Invariant: a resource belongs to one upstream at a time, for at most that upstream's `slots` jobs; a job holds
all of its upstream's resources or none, and gives them back exactly once. What cannot be proved to have ended
stays held. The failure this prevents is work that goes on for nobody on a card that was promised to the next
request. Rejected: a semaphore per upstream, which cannot say who holds it, cannot be restored after a crash,
and is released twice by a cancelled stream.

Usage::

    ledger = Ledger(settings, board)
    got = ledger.reserve("ollama", now, borrower="ci", model="m", resident=admit.credited)
    if isinstance(got, Refuse): ...   # resource_busy; got.needs_sample: read these capacities, decide again
    got.id, got.phase                 # a Job; write the journal slot, forward
    ledger.release(got.id, ReleasedBy.PROOF, now)      # Moved | Ignored, never raises
    ledger.hold(got.id, "client gone", now)            # keeps its resources until a proof
    ledger.restore(holds, now)                         # at start, from the journal

Whoever reserves must have asked the gate in the same turn of the loop, and after a wait asks it again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vacancy_agent.core.job import MOVES, RELEASES, Ignored, Job, JobId, Moved, Phase, ReleasedBy
from vacancy_agent.core.verdict import Refuse
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vacancy_agent.core.board import Board
    from vacancy_agent.core.facts import Instant, ProcessIdentity
    from vacancy_agent.core.job import Hold, Outcome
    from vacancy_agent.core.settings import HostSettings

_FORWARDING, _RELEASED, _PROOF = Phase.FORWARDING, Phase.RELEASED, ReleasedBy.PROOF
"""Under names of their own: a member looked up in its enumeration costs more than what is done with it."""
BUSY_HINT = 2
"""Seconds; Retry-After of `resource_busy`."""


@dataclass(slots=True)
class _Claim:
    """The jobs on one resource by upstream; more than one upstream only by restored holds."""

    jobs: dict[str, int] = field(default_factory=dict)
    last: Job | None = None
    """The job that ended last."""


class Ledger:
    """Reservations of one host.

    Args:
        settings: the upstreams with their resources and slots.
        board: told when work begins and ends on a resource, asked whether a sample came since.
    """

    def __init__(self, settings: HostSettings, board: Board) -> None:
        self._settings = settings
        self._board = board
        self._jobs: dict[JobId, Job] = {}
        self._claims: dict[str, _Claim] = {name: _Claim() for name in settings.resources}
        self.closed: dict[str, Reason] = {}
        """Why upstreams admit nothing: a reclaim of theirs is pending."""
        self._next = JobId(1)

    def reserve(
        self,
        upstream: str,
        now: Instant,
        borrower: str,
        model: str | None = None,
        process: ProcessIdentity | None = None,
        resident: bool = False,
    ) -> Job | Refuse:
        """Take all resources of the upstream for one job, or none.

        Args:
            upstream: name of a configured upstream.
            now: when.
            borrower: name of the token that asks.
            model: as the request names it.
            process: identity of the upstream's process, where it is local and known.
            resident: the gate credited the model as proved resident (`Admit.credited`).

        Returns:
            The job, or `resource_busy`.
        """
        known = self._settings.upstreams[upstream]
        if self.closed and upstream in self.closed:
            return _busy({"cause": "reclaim", "trigger": self.closed[upstream].value})
        claims, requires = self._claims, known.requires
        for name in requires:
            jobs = claims[name].jobs
            if jobs and (len(jobs) > 1 or jobs.get(upstream, known.slots) >= known.slots):
                return _busy({"resource": name, "cause": "in_use"})
        if self._board.unread and not self._board.unread.isdisjoint(requires):
            unread = self._unread(requires, (upstream, model) if resident else None)
            if unread:
                return _busy({"resource": unread[0], "cause": "needs_sample"}, unread)
        number = self._next
        self._next = number + 1  # type: ignore[assignment]  # JobId() would be a call for every request
        job = Job(number, upstream, requires, _FORWARDING, now, borrower, model, process)
        # As `_enter`, in the path of every request.
        for name in requires:
            jobs = claims[name].jobs
            if jobs:
                jobs[upstream] = jobs.get(upstream, 0) + 1
            else:
                self._board.work_began(name)
                jobs[upstream] = 1
        self._jobs[number] = job
        return job

    def track(self, job: JobId, now: Instant) -> Outcome:
        """The exchange ended as it should; the upstream works on."""
        return self._move(job, Phase.TRACKING, now)

    def hold(self, job: JobId, why: str, now: Instant) -> Outcome:
        """The exchange ended in a way that proves nothing: keep the resources until something does."""
        outcome = self._move(job, Phase.HELD, now)
        if isinstance(outcome, Moved):
            outcome.job.why = why
            outcome.job.held_since = now
        return outcome

    def release(self, job: JobId, by: ReleasedBy, now: Instant) -> Outcome:
        """The work ended: give its resources back, once."""
        known = self._jobs.get(job)
        if known is None:
            return Ignored(job, "no such job")
        if by not in RELEASES[known.phase]:
            return Ignored(job, f"a {known.phase.value} job cannot be released by {by.value}")
        known.released_by = by
        return self._move(job, Phase.RELEASED, now)

    def proved(self, job: JobId, now: Instant) -> tuple[str, ...]:
        """Release with proof, in few calls for a job that is forwarding; returns the resources now idle."""
        known = self._jobs.get(job)
        if known is None or known.phase is not _FORWARDING:
            moved = self.release(job, ReleasedBy.PROOF, now)
            return moved.idle if isinstance(moved, Moved) else ()
        known.released_by = _PROOF
        known.phase = _RELEASED
        del self._jobs[job]
        return self._leave(known, now)

    def restore(self, holds: Iterable[Hold], now: Instant) -> tuple[Job, ...]:
        """Take over what the journal kept. Only at start; holds may exceed an upstream's slots.

        They count as held from `now`: nobody watched the upstream before.

        Returns:
            The jobs in the order of `holds`.

        Raises:
            ValueError: two holds, or a hold and a job, have the same id.
        """
        kept = tuple(holds)
        self._next = JobId(max([self._next, *(hold.id + 1 for hold in kept if hold.id is not None)]))
        return tuple(self._restored(hold, now) for hold in kept)

    def close(self, upstream: str, trigger: Reason) -> None:
        """Admit nothing to the upstream while a reclaim of it is pending."""
        self.closed[upstream] = trigger

    def reopen(self, upstream: str) -> None:
        """The reclaim ended."""
        self.closed.pop(upstream, None)

    def reconfigure(self, settings: HostSettings) -> None:
        """Take over new settings; jobs keep the resources they have."""
        self._settings = settings
        for name in settings.resources:
            self._claims.setdefault(name, _Claim())

    def job(self, job: JobId) -> Job | None:
        """The job, while it is not released."""
        return self._jobs.get(job)

    def jobs(self, upstream: str | None = None) -> Iterator[Job]:
        """Every job that is not released, oldest first; of one upstream or of all."""
        return iter([job for job in self._jobs.values() if upstream is None or job.upstream == upstream])

    def active(self, upstream: str) -> frozenset[JobId]:
        """The upstream's jobs that are not held: what a reclaim can wait for or cut."""
        return frozenset(job.id for job in self.jobs(upstream) if job.phase is not Phase.HELD)

    def holds(self, upstream: str | None = None) -> Iterator[Job]:
        """The held jobs, oldest first."""
        return (job for job in self.jobs(upstream) if job.phase is Phase.HELD)

    def counts(self) -> Mapping[str, Mapping[Phase, int]]:
        """Jobs by upstream and phase; an upstream that has none is missing."""
        counts: dict[str, dict[Phase, int]] = {}
        for job in self._jobs.values():
            counts.setdefault(job.upstream, dict.fromkeys(_LIVE, 0))[job.phase] += 1
        return counts

    def _restored(self, hold: Hold, now: Instant) -> Job:
        known = self._settings.upstreams.get(hold.upstream)
        job = Job(
            id=self._new_id() if hold.id is None else hold.id,
            upstream=hold.upstream,
            resources=() if known is None else known.requires,
            phase=Phase.HELD,
            since=hold.since,
            borrower=hold.borrower,
            model=hold.model,
            process=hold.process,
            why=hold.why,
            held_since=now,
        )
        if job.id in self._jobs:
            raise ValueError(f"job {job.id} is there already")
        self._enter(job)
        return job

    def _new_id(self) -> JobId:
        number = self._next
        self._next = JobId(number + 1)
        return number

    def _unread(self, resources: tuple[str, ...], proved: tuple[str, str | None] | None) -> tuple[str, ...]:
        """Resources without a reading since their last job; a model proved resident needs none."""
        unread = self._board.unread
        return tuple(n for n in resources if n in unread and (proved is None or self._last(n) != proved))

    def _last(self, resource: str) -> tuple[str, str | None] | None:
        """Upstream and model of the job that ended last on a resource."""
        job = self._claims[resource].last
        return None if job is None else (job.upstream, job.model)

    def _enter(self, job: Job) -> None:
        for name in job.resources:
            jobs = self._claims[name].jobs
            if not jobs:
                self._board.work_began(name)
            jobs[job.upstream] = jobs.get(job.upstream, 0) + 1
        self._jobs[job.id] = job

    def _move(self, job_id: JobId, to: Phase, now: Instant) -> Outcome:
        job = self._jobs.get(job_id)
        if job is None:
            return Ignored(job_id, "no such job")
        was = job.phase
        if to not in MOVES[was]:
            return Ignored(job_id, f"a {was.value} job cannot become {to.value}")
        job.phase = to
        if to is not Phase.RELEASED:
            return Moved(job, was)
        del self._jobs[job_id]
        return Moved(job, was, self._leave(job, now))

    def _leave(self, job: Job, now: Instant) -> tuple[str, ...]:
        idle: tuple[str, ...] = ()
        upstream = job.upstream
        for name in job.resources:
            claim = self._claims[name]
            jobs = claim.jobs
            left = jobs[upstream] - 1
            claim.last = job
            if left:
                jobs[upstream] = left
                continue
            del jobs[upstream]
            if not jobs:
                self._board.work_ended(name, now)
                idle += (name,)
        return idle


_LIVE = (Phase.FORWARDING, Phase.TRACKING, Phase.HELD)


def _busy(detail: dict[str, object], needs_sample: tuple[str, ...] = ()) -> Refuse:
    return Refuse(Reason.RESOURCE_BUSY, BUSY_HINT, detail, 7, needs_sample)
