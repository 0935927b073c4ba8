"""Does a look prove that a held job has ended? Pure.

Invariant: a hold is freed by what was seen *after* its connection was closed, never by what was seen before,
and never by arithmetic. That as many slots work as we ourselves have requests under way proves nothing: one
of the busy slots may be the abandoned job's while ours waits behind it. Two sightings do prove it: nothing
runs there at all; or the model that the job ran on was there after the job was forwarded, and the server has
let it go since.

Rejected: to follow the server's own task numbers (llama-server has them), which frees a hold while other work
goes on. It is sound only for a request that is one task for any slot, which would have to be read from every
body in the path of every request; and a server that is never idle becomes so by the places it loses to holds.

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
    from collections.abc import Container, Iterable

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
    model: str | None = None
    """In the one spelling that names are compared by."""
    admitted: Instant = Instant(math.inf)
    """When it was admitted; infinite: unknown, so that no process is known to be younger."""
    prompt: str | None = None
    """The id of its prompt, of a ComfyUI submission."""
    confirmed: bool = False
    """The server has answered with that id."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A job has ended, and how that is known."""

    job: JobId
    by: ReleasedBy
    why: str


def by_sighting(jobs: Iterable[HeldJob], sighting: Sighting) -> tuple[Ended, ...]:
    """Judge one look against every held job of the upstream.

    1. A look that shows nothing, or that began sooner than 1.5 s after a job's close: the job stays held.
    2. Nothing runs: ended.
    3. Its model was listed after it was admitted, and is gone: ended.
    4. Its prompt, under the id that the server has for it, neither waits nor runs: ended.
    """
    if isinstance(sighting, Unclear):
        return ()
    proofs = ((job, _proof(job, sighting)) for job in jobs if sighting.began >= job.closed_at + SETTLE)
    return tuple(Ended(job.id, ReleasedBy.PROOF, why) for job, why in proofs if why is not None)


def _proof(job: HeldJob, sighting: Idle | Working) -> str | None:
    if isinstance(sighting, Idle):
        return sighting.how
    prompts = sighting.prompts
    known = job.prompt is not None and (job.confirmed or sighting.keeps_ids)
    if known and prompts is not None and job.prompt not in prompts:
        return "its prompt is not in the queue"
    listed = None if job.model is None else sighting.gone.get(job.model)
    return f"the server has let {job.model} go" if listed is not None and listed > job.admitted else None


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
