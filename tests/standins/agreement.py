"""What must be true of an agent at every moment between two turns of its loop: its five books agree.

The ledger, the hold journal, the requests under way, the held slots and the board tell of the same jobs.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from vacancy_agent.core.job import Phase
from vacancy_agent.core.reclaim_upstream import Work
from vacancy_agent.store.journal_format import Phase as Written
from vacancy_agent.wiring.holds import CAUSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vacancy_agent.core.job import Job
    from vacancy_agent.core.reclaim import Reclaims
    from vacancy_agent.proxy.host import Host
    from vacancy_agent.store.journal import HoldJournal


def check(
    host: Host,
    journal: HoldJournal,
    reclaims: Reclaims | None = None,
    slots: Mapping[str, int] | None = None,
) -> None:
    """Fail with every disagreement.

    `slots`: as many jobs as an upstream may have, where it had more slots before; an empty mapping: as many
    as there are, of any upstreams, since some may have come back with the holds of another configuration.
    """
    assert list(disagreements(host, journal, reclaims, slots)) == []


def check_empty(host: Host, journal: HoldJournal, reclaims: Reclaims | None = None) -> None:
    """Fail also when anything is left of any job."""
    check(host, journal, reclaims)
    assert [job.id for job in host.ledger.jobs()] == []
    assert not host.board._work


def disagreements(
    host: Host, journal: HoldJournal, reclaims: Reclaims | None, slots: Mapping[str, int] | None
) -> Iterator[str]:
    jobs = {job.id: job for job in host.ledger.jobs()}
    yield from _of_phases(host, jobs)
    yield from _of_journal(host, jobs, journal)
    yield from _of_resources(host, jobs, slots)
    if reclaims is not None:
        for name, machine in reclaims.machines.items():
            waits = machine.work is Work.WAITING
            if waits != (name in host.ledger.closed):
                yield f"{name}: reclaim is {machine.work.value}, admission closed: {not waits}"
            waited_for = machine._pending.jobs if machine._pending is not None else set()
            if not waited_for <= host.ledger.active(name):
                yield f"{name}: reclaim waits for {waited_for}, {set(host.ledger.active(name))} run"


def _of_phases(host: Host, jobs: Mapping[int, Job]) -> Iterator[str]:
    by_phase: dict[Phase, set[int]] = {phase: set() for phase in Phase}
    for job in jobs.values():
        by_phase[job.phase].add(job.id)
    if by_phase[Phase.FORWARDING] != set(host.requests):
        yield f"forwarded {by_phase[Phase.FORWARDING]}, requests {set(host.requests)}"
    if by_phase[Phase.HELD] != set(host.held_slots):
        yield f"held {by_phase[Phase.HELD]}, held slots {set(host.held_slots)}"
    if by_phase[Phase.TRACKING] != set(host.tracked):
        yield f"tracking {by_phase[Phase.TRACKING]}, tracked {set(host.tracked)}"
    for number, request in host.requests.items():
        if request.job is None or request.job.id != number or not request.exchange.alive:
            yield f"request {number} is not that of a living exchange"
    counted = {
        (upstream, phase): n
        for upstream, phases in host.ledger.counts().items()
        for phase, n in phases.items()
        if n
    }
    if counted != Counter((job.upstream, job.phase) for job in jobs.values()):
        yield f"counts {counted} of {[(job.id, job.phase) for job in jobs.values()]}"


def _of_journal(host: Host, jobs: Mapping[int, Job], journal: HoldJournal) -> Iterator[str]:
    for upstream, partition in journal._open.items():
        written = {hold.slot: hold.record.job for hold in partition.holds() if hold.record is not None}
        known: dict[int, int] = {
            request.slot: number
            for number, request in host.requests.items()
            if jobs[number].upstream == upstream
        }
        known |= {
            held.slot: number for number, held in host.held_slots.items() if held.partition is partition
        }
        known |= {one.slot: number for number, one in host.tracked.items() if one.partition is partition}
        if written != known:
            yield f"{upstream}: the journal has {written}, the agent {known}"
        for hold in partition.holds():
            job = jobs.get(known.get(hold.slot, 0))
            here = job is not None and job.phase is Phase.HELD and job.why not in CAUSES.values()
            if here and hold.record is not None and hold.record.phase is not Written.HELD:
                yield f"{upstream}: job {hold.record.job} is held, and written as {hold.record.phase.name}"


def _of_resources(host: Host, jobs: Mapping[int, Job], slots: Mapping[str, int] | None) -> Iterator[str]:
    busy: dict[str, Counter[str]] = {}
    for job in jobs.values():
        for resource in job.resources:
            busy.setdefault(resource, Counter())[job.upstream] += 1
    if set(busy) != host.board._work:
        yield f"work on {set(busy)}, the board thinks {host.board._work}"
    if slots is None:
        slots = {name: upstream.slots for name, upstream in host.board.settings.upstreams.items()}
    for resource, upstreams in busy.items():
        if slots and len(upstreams) > 1:
            yield f"{resource} has jobs of {dict(upstreams)}"
        for upstream, number in upstreams.items():
            if number > slots.get(upstream, number):
                yield f"{number} jobs of {upstream} on {resource}"
