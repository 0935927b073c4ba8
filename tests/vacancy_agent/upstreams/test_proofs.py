from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vacancy_agent.core.facts import Instant, ProcessIdentity, Seconds
from vacancy_agent.core.job import JobId, ReleasedBy
from vacancy_agent.upstreams.proofs import HeldJob, by_assumption, by_process, by_sighting
from vacancy_agent.upstreams.sighting import Idle, Sighting, Unclear, Working


def job(number: int = 1, closed: float = 100.0, process: ProcessIdentity | None = None) -> HeldJob:
    """Forwarded five seconds before its connection was closed."""
    return HeldJob(JobId(number), Instant(closed), process, "m:latest", Instant(closed - 5))


def idle(at: float) -> Idle:
    return Idle(Instant(at), "idle")


def working(at: float, **gone: float) -> Working:
    return Working(Instant(at), "busy", {f"{model}:latest": Instant(seen) for model, seen in gone.items()})


def ended(jobs: list[HeldJob], *sightings: Sighting) -> set[int]:
    """Who has ended after these looks."""
    gone: set[int] = set()
    for sighting in sightings:
        gone |= {found.job for found in by_sighting([j for j in jobs if j.id not in gone], sighting)}
    return gone


def test_an_idle_server_frees_what_was_closed_well_before_the_look():
    jobs = [job(1, 100.0), job(2, 101.0)]
    assert ended(jobs, idle(101.4)) == set()
    assert ended(jobs, idle(101.5)) == {1}
    assert ended(jobs, idle(102.5)) == {1, 2}


def test_a_server_at_work_and_an_unclear_look_free_nothing():
    assert ended([job()], working(102), Unclear("off"), working(1e6)) == set()


def test_a_model_that_was_listed_after_the_job_was_forwarded_and_is_gone_took_the_job_along():
    assert ended([job()], working(102, m=96.0)) == {1}
    (found,) = by_sighting([job()], working(102, m=96.0))
    assert (found.by, found.why) == (ReleasedBy.PROOF, "the server has let m:latest go")


def test_a_model_that_was_listed_last_before_the_job_came_proves_nothing():
    """The job may be waiting for it to be loaded."""
    assert ended([job()], working(102, m=94.0), working(200, m=95.0)) == set()


def test_another_model_that_is_gone_proves_nothing():
    assert ended([job()], working(102, n=101.0)) == set()
    nameless = HeldJob(JobId(1), Instant(100.0), admitted=Instant(95.0))
    assert ended([nameless], working(102, m=101.0)) == set()


def test_nor_does_a_look_from_before_the_close_or_a_job_of_unknown_age():
    assert ended([job()], working(101.4, m=99.0)) == set()
    assert ended([HeldJob(JobId(1), Instant(100.0), model="m:latest")], working(200, m=150.0)) == set()


def prompt(*, confirmed: bool = False) -> HeldJob:
    return HeldJob(JobId(1), Instant(100.0), prompt="p", confirmed=confirmed)


def queued(at: float, *prompts: str, keeps: bool = True) -> Working:
    return Working(Instant(at), "busy", prompts=frozenset(prompts), keeps_ids=keeps)


def test_a_prompt_that_is_not_in_the_queue_has_ended():
    assert ended([prompt()], queued(102, "other")) == {1}
    (found,) = by_sighting([prompt()], queued(102, "other"))
    assert (found.by, found.why) == (ReleasedBy.PROOF, "its prompt is not in the queue")
    assert ended([prompt()], queued(102, "p", "other")) == set()


def test_a_submission_may_reach_the_queue_a_moment_after_its_close():
    assert ended([prompt()], queued(101.4, "other")) == set()


def test_an_id_that_may_not_be_the_servers_proves_nothing():
    assert ended([prompt()], queued(102, "other", keeps=False)) == set()
    assert ended([prompt(confirmed=True)], queued(102, "other", keeps=False)) == {1}


def test_nor_does_a_queue_that_was_not_read_or_a_job_without_a_prompt():
    assert ended([prompt()], working(102)) == set()
    assert ended([job()], queued(102, "other")) == set()


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
    looks: list[Sighting] = []
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
            looks.append(working(at) if slots else idle(at))
    assert ended([job()], *looks) == set()
