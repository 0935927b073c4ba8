"""Does a look prove that a held job has ended? Pure.

Invariant: a hold is freed by what was seen *after* its connection was closed, never by what was seen before,
and never by arithmetic. That as many slots work as we ourselves have requests under way proves nothing: one
of the busy slots may be the abandoned job's while ours waits behind it. Two sightings do prove it:

* nothing runs there at all;
* what ran at a look after the close, when a free slot showed that nothing waited, has all ended since. The
  server numbers its tasks, so the held job is one of those or had ended before. This is what frees a hold on
  a server that is never idle. It holds only for a job that is one task for any slot: a request for several
  completions, or for one certain slot, waits beside a free one.

Seen on a llama-server with two slots: while one of them streams, the other works on for a non-streaming
client that left, until it is done; and a queued request whose client left gets a slot when its turn comes.

A job counts as ended also when the process it was given to is not there any more, and when the owner has
written that it shall be assumed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Instant, ProcessIdentity, Seconds
from vacancy_agent.core.job import ReleasedBy
from vacancy_agent.upstreams.sighting import Idle, Unclear, Working

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from vacancy_agent.core.job import JobId
    from vacancy_agent.upstreams.sighting import Sighting

SETTLE = Seconds(1.5)
"""From the close of a job's connection to the first look that can prove its end: servers need a moment to
notice, and a request that was just sent may not be counted yet."""


@dataclass(frozen=True, slots=True)
class HeldJob:
    """What a proof needs to know of a held job."""

    id: JobId
    closed_at: Instant
    process: ProcessIdentity | None = None
    one_task: bool = False
    """It is known to be one task for any slot of the server."""
    admitted: Instant = Instant(math.inf)
    """When it was admitted; infinite: unknown, so that no process is known to be younger."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A job has ended, and how that is known."""

    job: JobId
    by: ReleasedBy
    why: str


@dataclass(frozen=True, slots=True)
class Judged:
    """The jobs that ended, and what to remember of the others until the next look."""

    ended: tuple[Ended, ...]
    suspects: Mapping[JobId, frozenset[int]]
    """For each job the tasks of the server that may be it."""


def by_sighting(
    jobs: Iterable[HeldJob], sighting: Sighting, suspects: Mapping[JobId, frozenset[int]]
) -> Judged:
    """Judge one look against every held job of the upstream.

    1. A look that shows nothing, or that began sooner than 1.5 s after a job's close: the job stays held.
    2. Nothing runs: ended.
    3. It is one task, and none of those that could be it runs any more: ended.
    """
    ended: list[Ended] = []
    left: dict[JobId, frozenset[int]] = {}
    for job in jobs:
        known = suspects.get(job.id)
        if isinstance(sighting, Unclear) or sighting.began < job.closed_at + SETTLE:
            now_suspected = known
        elif isinstance(sighting, Idle):
            ended.append(Ended(job.id, ReleasedBy.PROOF, sighting.how))
            continue
        else:
            now_suspected = _narrow(known, sighting) if job.one_task else None
            if now_suspected is not None and not now_suspected:
                ended.append(Ended(job.id, ReleasedBy.PROOF, "what ran when it was closed has ended"))
                continue
        if now_suspected is not None:
            left[job.id] = now_suspected
    return Judged(tuple(ended), left)


def _narrow(known: frozenset[int] | None, sighting: Working) -> frozenset[int] | None:
    if sighting.tasks is None:
        return known
    return sighting.tasks if known is None else known & sighting.tasks


def by_process(jobs: Iterable[HeldJob], gone: Container[JobId]) -> tuple[Ended, ...]:
    """The jobs whose process has ended or was replaced."""
    return tuple(
        Ended(job.id, ReleasedBy.REPLACED, f"process {job.process.pid}, which had it, is gone")
        for job in jobs
        if job.process is not None and job.id in gone
    )


def by_assumption(jobs: Iterable[HeldJob], after: Seconds | None, now: Instant) -> tuple[Ended, ...]:
    """The jobs that are held for longer than the owner wants to wait (`assumeEndedAfter`)."""
    if after is None:
        return ()
    return tuple(
        Ended(job.id, ReleasedBy.ASSUMED, f"assumed to have ended after {after:g} s")
        for job in jobs
        if now - job.closed_at >= after
    )
