from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from standins.hosts import START, host, seen, upstream, vacant
from vacancy_agent.core.board import Pressure
from vacancy_agent.core.effects import ReclaimPhase
from vacancy_agent.core.facts import Evidence, Instant, Seconds
from vacancy_agent.core.job import Job, Moved, ReleasedBy
from vacancy_agent.core.ledger import Ledger
from vacancy_agent.core.lending import LocalPause
from vacancy_agent.core.reclaim import Reclaims
from vacancy_agent.core.settings import Dialect, OnOwnerReturn, OwnerSettings
from vacancy_agent.reclaim.runner import ReclaimRunner

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_agent.core.job import JobId
    from vacancy_agent.core.settings import HostSettings
    from vacancy_api.reasons import Reason


class Timer:
    def __init__(self, at: float) -> None:
        self.at = at
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class World:
    """Board, ledger and machines are real; cuts, timers and log lines are noted in one list."""

    def __init__(self, settings: HostSettings) -> None:
        self.time = START
        self.log: list[Any] = []
        self.timers: list[Timer] = []
        self.board = vacant(settings)
        self.ledger = Ledger(settings, self.board)
        self.runner = ReclaimRunner(Reclaims(settings), self.ledger, self, self, self.tell)
        self.runner.wake = self.wake  # type: ignore[assignment]

    def now(self) -> Instant:
        return Instant(self.time)

    def awake(self) -> Seconds:
        return Seconds(self.time)

    def wall(self) -> Any:
        return 1_772_366_400.0

    def tell(self, event: str, **facts: object) -> None:
        self.log.append((event, facts.get("phase")))

    def wake(self, delay: float, callback: Callable[[], None]) -> Timer:
        assert callback == self.runner.tick
        self.timers.append(Timer(self.time + delay))
        return self.timers[-1]

    def cut(self, job: JobId, reason: Reason) -> None:
        """As the real one: the exchange ends, and that is reported back in the midst of the cut."""
        self.log.append(("cut", int(job), reason.value))
        self.ledger.hold(job, "cut", self.now())
        self.runner.job_ended("llm", job, self.now())

    def job(self, upstream_name: str = "llm") -> Job:
        job = self.ledger.reserve(upstream_name, self.now(), borrower="ci")
        assert isinstance(job, Job)
        return job

    def cuts(self) -> list[int]:
        return [entry[1] for entry in self.log if entry[0] == "cut"]

    def returns(self) -> None:
        self.board.set_presence(seen(Evidence.PRESENT, self.time), self.now())
        self.runner.owner_returned(self.now())


def world(policy: OnOwnerReturn, **more: Any) -> World:
    facts: dict[str, Any] = {"slots": 3, "drain_timeout": Seconds(30.0), "on_owner_return": policy} | more
    return World(host([upstream("llm", **facts)], owner=OwnerSettings(release_after=Seconds(5.0))))


def test_cancel_cuts_within_the_call_in_order_and_opens_again() -> None:
    w = world(OnOwnerReturn.CANCEL)
    jobs = [w.job() for _ in range(3)]
    w.returns()
    assert w.cuts() == [job.id for job in jobs]
    assert w.log[0] == ("reclaim", "proceeding")
    assert w.runner.published["llm"].phase is ReclaimPhase.PROCEEDING
    assert "llm" not in w.ledger.closed
    assert w.timers == []


def test_drain_waits_for_the_jobs_and_cuts_at_the_deadline() -> None:
    w = world(OnOwnerReturn.DRAIN)
    first, second = w.job(), w.job()
    w.returns()
    assert (w.cuts(), w.runner.published["llm"].phase) == ([], ReclaimPhase.WAITING)
    assert [timer.at for timer in w.timers] == [START + 30]
    w.time = Instant(START + 10)
    w.ledger.release(first.id, ReleasedBy.PROOF, w.now())
    w.runner.job_ended("llm", first.id, w.now())
    assert w.cuts() == []
    w.time = Instant(START + 29.9)
    w.runner.tick()
    assert w.cuts() == []
    w.time = Instant(START + 30)
    w.runner.tick()
    assert w.cuts() == [second.id]
    assert w.runner.published["llm"].phase is ReclaimPhase.PROCEEDING


def test_a_drain_ends_with_its_last_job_and_nothing_is_cut() -> None:
    w = world(OnOwnerReturn.DRAIN)
    job = w.job()
    w.returns()
    w.ledger.release(job.id, ReleasedBy.PROOF, w.now())
    w.runner.job_ended("llm", job.id, w.now())
    assert w.cuts() == []
    assert w.runner.published["llm"].phase is ReclaimPhase.PROCEEDING
    assert "llm" not in w.ledger.closed


def test_finish_leaves_the_work_alone() -> None:
    w = world(OnOwnerReturn.FINISH)
    w.job()
    w.returns()
    w.time = Instant(START + 10_000)
    w.runner.tick()
    assert w.cuts() == []


def test_a_wait_stands_down_when_the_owner_has_left() -> None:
    w = world(OnOwnerReturn.DRAIN)
    w.job()
    w.returns()
    for after, phase in ((2.0, ReclaimPhase.WAITING), (6.0, ReclaimPhase.STOOD_DOWN)):
        w.time = Instant(START + after)
        w.board.set_presence(seen(at=w.time), w.now())
        w.runner.recheck(w.board, w.now())
        assert w.runner.published["llm"].phase is phase
    assert "llm" not in w.ledger.closed
    w.time = Instant(START + 31)
    w.runner.tick()
    assert w.cuts() == []


def test_stopping_lending_cuts_too_and_only_resuming_stands_it_down() -> None:
    w = world(OnOwnerReturn.DRAIN)
    w.job()
    w.board.set_local_pause(LocalPause(None))
    w.runner.lending_stopped(w.now())
    w.runner.recheck(w.board, w.now())
    assert w.runner.published["llm"].phase is ReclaimPhase.WAITING
    w.board.set_local_pause(None)
    w.runner.recheck(w.board, w.now())
    assert w.runner.published["llm"].phase is ReclaimPhase.STOOD_DOWN


def test_what_a_cut_causes_waits_behind_the_cuts_under_way() -> None:
    """Ending the first job must not open admission while the second is still to be cut."""
    w = world(OnOwnerReturn.CANCEL)
    jobs = [w.job(), w.job()]
    opened: list[list[int]] = []
    reopen = w.ledger.reopen

    def noted(name: str) -> None:
        opened.append(w.cuts())
        reopen(name)

    w.ledger.reopen = noted  # type: ignore[method-assign]
    w.returns()
    assert opened == [[job.id for job in jobs]]


def test_effects_that_fail_do_not_stop_the_runner_for_ever() -> None:
    w = world(OnOwnerReturn.CANCEL)
    w.job()

    def broken(_job: JobId, _reason: Reason) -> None:
        raise RuntimeError("a bug")

    w.runner._cutter = type("Broken", (), {"cut": staticmethod(broken)})()
    with pytest.raises(RuntimeError, match="a bug"):
        w.returns()
    assert not w.runner._running


def test_a_later_deadline_replaces_the_timer_and_closing_stops_it() -> None:
    w = world(OnOwnerReturn.DRAIN)
    job = w.job()
    w.returns()
    w.ledger.release(job.id, ReleasedBy.PROOF, w.now())
    w.runner.job_ended("llm", job.id, w.now())
    w.board.set_capacity("gpu", w.board.capacity["gpu"])
    w.board.unread.clear()
    w.time = Instant(START + 5)
    w.job()
    w.runner.owner_returned(w.now())
    assert [timer.cancelled for timer in w.timers] == [True, False]
    w.runner.close()
    assert [timer.cancelled for timer in w.timers] == [True, True]


def test_before_the_loop_runs_no_timer_is_set() -> None:
    w = world(OnOwnerReturn.DRAIN)
    w.runner.wake = None
    w.job()
    w.returns()
    assert w.runner.published["llm"].phase is ReclaimPhase.WAITING


def test_pressure_is_an_edge_of_the_machines_it_reaches() -> None:
    w = world(OnOwnerReturn.CANCEL)
    job = w.job()
    w.board.set_pressure("gpu", Pressure.ENGAGED)
    w.runner._run(w.runner.reclaims.pressure_edge("gpu", w.ledger.active, w.now(), veto=False))
    assert ("cut", job.id, "resource_pressured") in w.log


def test_an_unload_is_handed_on_and_its_result_comes_back() -> None:
    w = world(OnOwnerReturn.CANCEL, dialect=Dialect.OLLAMA, yield_on_veto=True)
    asked: list[Any] = []
    w.runner.unload = asked.append
    w.job()
    w.returns()
    assert w.runner.claims == {"llm": None}
    assert "llm" in w.ledger.closed
    w.runner.unload_result("llm", asked[0].attempt, shown=True)
    assert w.runner.claims == {"llm": True}
    assert "llm" not in w.ledger.closed


def test_an_unload_that_nobody_can_do_is_not_claimed_to_have_worked() -> None:
    w = world(OnOwnerReturn.CANCEL, dialect=Dialect.OLLAMA, yield_on_veto=True)
    w.job()
    w.returns()
    w.time = Instant(START + 10)
    w.runner.tick()
    assert w.runner.claims == {"llm": False}
    assert "llm" not in w.ledger.closed


def test_an_upstream_that_is_configured_away_does_not_stay_closed() -> None:
    w = world(OnOwnerReturn.DRAIN)
    w.job()
    w.returns()
    assert "llm" in w.ledger.closed
    w.runner.reconfigure(host([upstream("other")]))
    assert "llm" not in w.ledger.closed
    assert isinstance(w.ledger.release(next(w.ledger.jobs()).id, ReleasedBy.PROOF, w.now()), Moved)
