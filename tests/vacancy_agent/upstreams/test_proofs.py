from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vacancy_agent.core.facts import Instant, ProcessIdentity, Seconds
from vacancy_agent.core.job import JobId, ReleasedBy
from vacancy_agent.upstreams.proofs import HeldJob, by_assumption, by_process, by_sighting
from vacancy_agent.upstreams.sighting import Idle, Unclear, Working

ONE = JobId(1)


def job(number: int = 1, closed: float = 100.0, process: ProcessIdentity | None = None) -> HeldJob:
    return HeldJob(JobId(number), Instant(closed), process, one_task=True)


def idle(at: float) -> Idle:
    return Idle(Instant(at), "idle")


def working(at: float, *tasks: int, known: bool = True) -> Working:
    return Working(Instant(at), "busy", frozenset(tasks) if known else None)


def ended(jobs, *sightings) -> set[int]:
    """Who has ended after these looks."""
    suspects: dict = {}
    gone: set[int] = set()
    for sighting in sightings:
        judged = by_sighting([held for held in jobs if held.id not in gone], sighting, suspects)
        suspects = dict(judged.suspects)
        gone |= {found.job for found in judged.ended}
    return gone


def test_an_idle_server_frees_what_was_closed_well_before_the_look():
    jobs = [job(1, 100.0), job(2, 101.0)]
    assert ended(jobs, idle(101.4)) == set()
    assert ended(jobs, idle(101.5)) == {1}
    assert ended(jobs, idle(102.5)) == {1, 2}


def test_an_unclear_look_frees_nothing_and_forgets_nothing():
    assert ended([job()], Unclear("off")) == set()
    assert ended([job()], working(102, 7), Unclear("off"), working(104, 8)) == {1}


def test_a_server_at_work_frees_nothing_however_few_of_its_slots_work():
    assert ended([job()], working(102, known=False), working(110, known=False)) == set()
    assert ended([job()], working(102, 7), working(104, 7), working(106, 7, 8)) == set()


def test_what_ran_when_the_job_was_closed_has_ended():
    assert ended([job()], working(102, 7, 8), working(104, 8, 9), working(106, 9)) == {1}


def test_a_job_of_several_tasks_may_wait_beside_a_free_slot_and_needs_an_idle_server():
    several = HeldJob(ONE, Instant(100.0))
    assert ended([several], working(102, 7), working(104, 8), working(106, 8)) == set()
    assert ended([several], working(102, 7), idle(104)) == {1}


def test_a_look_from_before_the_close_accuses_nobody():
    # Task 7 was seen before the job's close had settled; 8 may be the job.
    assert ended([job()], working(101, 7), working(102, 8), working(104, 8)) == set()


def test_looks_without_task_numbers_in_between_do_not_matter():
    # Every slot was busy: something may have waited, and later got a number of its own.
    assert ended([job()], working(102, known=False), working(104, 9), working(106, 9)) == set()
    assert ended([job()], working(102, 7), working(104, known=False), working(106, 9)) == {1}


def test_each_job_has_its_own_suspects():
    jobs = [job(1, 100.0), job(2, 103.0)]
    assert ended(jobs, working(102, 7), working(105, 8)) == {1}
    assert ended(jobs, working(102, 7), working(105, 8), working(107, 9)) == {1, 2}


def test_a_gone_process_takes_its_jobs_with_it():
    old, new = ProcessIdentity(5, 1.0), ProcessIdentity(5, 2.0)
    found = by_process([job(1, process=old), job(2, process=new), job(3)], {JobId(1), JobId(3)})
    assert [(end.job, end.by) for end in found] == [(1, ReleasedBy.REPLACED)]
    assert by_process([job(1, process=old)], set()) == ()


def test_an_end_is_assumed_only_where_the_owner_wrote_it():
    jobs = [job(1, 100.0), job(2, 130.0)]
    assert by_assumption(jobs, None, Instant(1e9)) == ()
    found = by_assumption(jobs, Seconds(60.0), Instant(160.0))
    assert [(end.job, end.by) for end in found] == [(1, ReleasedBy.ASSUMED)]


@given(
    st.integers(0, 2),
    st.lists(st.tuples(st.floats(0.1, 5.0), st.sampled_from(["come", "go", "look"])), max_size=40),
)
def test_a_job_that_waits_or_runs_is_never_freed(others: int, history: list[tuple[float, str]]):
    """A server with two slots and a queue: the held job takes a slot when its turn comes, and keeps it."""
    held, task, at = 50, 51, 100.0
    slots: list[int] = list(range(others))
    queue = [held]
    looks = []
    for gap, event in history:
        at += gap
        if event == "come":
            queue.append(task)
            task += 1
        elif event == "go":
            slots = [running for running in slots if running == held]
        while queue and len(slots) < 2:
            slots.append(queue.pop(0))
        if event == "look":
            looks.append(working(at, *slots, known=len(slots) < 2) if slots else idle(at))
    assert ended([job()], *looks) == set()
