from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from standins.hosts import upstream
from vacancy_agent.core.effects import (
    CancelWork,
    CloseAdmission,
    Effect,
    PublishPhase,
    ReclaimPhase,
    ReopenAdmission,
    ReportReclaimed,
    Unload,
    WakeAt,
)
from vacancy_agent.core.facts import Instant, Seconds
from vacancy_agent.core.job import JobId
from vacancy_agent.core.reclaim_upstream import Unloading, UpstreamReclaim, Work
from vacancy_agent.core.settings import Dialect, OnOwnerReturn
from vacancy_api.reasons import Reason

OWNER, PRESSED = Reason.OWNER_ACTIVE, Reason.RESOURCE_PRESSURED
WAITING, STOOD_DOWN, PROCEEDING = ReclaimPhase.WAITING, ReclaimPhase.STOOD_DOWN, ReclaimPhase.PROCEEDING
CLOSE, REOPEN = CloseAdmission("llm", OWNER), ReopenAdmission("llm")


def t(seconds: float) -> Instant:
    return Instant(seconds)


def jobs(*ids: int) -> tuple[JobId, ...]:
    return tuple(JobId(i) for i in ids)


def machine(policy: OnOwnerReturn = OnOwnerReturn.DRAIN, *, unloads: bool = False) -> UpstreamReclaim:
    dialect = Dialect.OLLAMA if unloads else Dialect.LLAMACPP
    return UpstreamReclaim(upstream(on_owner_return=policy, yield_on_veto=unloads, dialect=dialect))


def published(phase: ReclaimPhase, at: float, *edges: float) -> PublishPhase:
    return PublishPhase("llm", phase, tuple(t(edge) for edge in edges), t(at))


def cancelled(*ids: int, reason: Reason = OWNER) -> CancelWork:
    return CancelWork("llm", jobs(*ids), reason)


def test_cancel_cuts_at_once() -> None:
    m = machine(OnOwnerReturn.CANCEL)
    assert m.edge(OWNER, jobs(2, 1), t(10)) == (CLOSE, published(PROCEEDING, 10, 10), cancelled(1, 2), REOPEN)


def test_drain_cuts_at_the_deadline_of_the_first_edge() -> None:
    m = machine()
    assert m.edge(OWNER, jobs(1, 2), t(10)) == (CLOSE, published(WAITING, 10, 10), WakeAt("llm", t(40)))
    assert m.deadline == 40
    assert m.edge(OWNER, jobs(1, 2), t(35)) == (published(WAITING, 35, 10, 35),), "no later edge extends it"
    assert m.tick(t(39.9)) == ()
    assert m.tick(t(40)) == (published(PROCEEDING, 40, 10, 35), cancelled(1, 2), REOPEN)
    assert m.tick(t(50)) == ()


def test_drain_names_only_what_is_still_under_way() -> None:
    m = machine()
    m.edge(OWNER, jobs(1, 2, 3), t(10))
    assert m.job_ended(JobId(2), t(12)) == ()
    assert m.job_ended(JobId(9), t(12)) == (), "not of this reclaim"
    assert cancelled(1, 3) in m.tick(t(40))


def test_drain_ends_when_its_work_has_ended() -> None:
    m = machine()
    m.edge(OWNER, jobs(1), t(10))
    assert m.job_ended(JobId(1), t(12)) == (published(PROCEEDING, 12, 10), REOPEN)
    assert m.tick(t(40)) == ()


def test_finish_without_unloading_has_nothing_to_do() -> None:
    assert machine(OnOwnerReturn.FINISH).edge(OWNER, jobs(1), t(10)) == ()


def test_an_idle_upstream_that_keeps_its_model_has_nothing_to_do() -> None:
    assert machine().edge(OWNER, (), t(10)) == ()


def test_cancel_unloads_at_once() -> None:
    m = machine(OnOwnerReturn.CANCEL, unloads=True)
    assert m.edge(OWNER, jobs(1), t(10)) == (
        CLOSE,
        published(PROCEEDING, 10, 10),
        cancelled(1),
        Unload("llm", 1, t(20)),
        WakeAt("llm", t(20)),
    )
    assert m.unload_result(1, t(12), shown=True) == (ReportReclaimed("llm", True), REOPEN)


def test_drain_unloads_an_idle_upstream_at_once() -> None:
    effects = machine(unloads=True).edge(OWNER, (), t(10))
    assert Unload("llm", 1, t(20)) in effects
    assert not any(isinstance(effect, CancelWork) for effect in effects)


@pytest.mark.parametrize(("ended", "at"), [(True, 60), (False, 610)])
def test_finish_defers_the_unload_to_the_end_of_work_or_the_completion_timeout(
    ended: bool, at: float
) -> None:
    m = machine(OnOwnerReturn.FINISH, unloads=True)
    assert m.edge(OWNER, jobs(1), t(10))[-1] == WakeAt("llm", t(610))
    assert m.tick(t(609)) == ()
    effects = m.job_ended(JobId(1), t(at)) if ended else m.tick(t(at))
    assert Unload("llm", 1, t(at + 10)) in effects
    assert not any(isinstance(effect, CancelWork) for effect in effects), "finish never cancels"


def test_a_wait_stands_down_and_the_next_edge_starts_anew() -> None:
    m = machine(unloads=True)
    m.edge(OWNER, jobs(1), t(10))
    assert m.stand_down(t(20)) == (published(STOOD_DOWN, 20, 10), REOPEN)
    assert m.tick(t(40)) == ()
    assert m.edge(OWNER, jobs(1), t(50))[-1] == WakeAt("llm", t(80))


def test_what_proceeded_does_not_stand_down() -> None:
    m = machine(OnOwnerReturn.CANCEL, unloads=True)
    m.edge(OWNER, jobs(1), t(10))
    assert m.stand_down(t(11)) == ()


def test_a06_an_unload_that_is_not_shown_ends_at_its_deadline_and_says_so_once() -> None:
    """ollama/ollama#7606: the server says yes to the unload and lists the model for another 90 s."""
    m = machine(OnOwnerReturn.CANCEL, unloads=True)
    m.edge(OWNER, (), t(10))
    assert m.tick(t(20)) == (ReportReclaimed("llm", False), REOPEN)
    assert ReportReclaimed("llm", False).reason == "UnloadNotConfirmed"
    m.edge(OWNER, (), t(100))
    assert m.tick(t(110)) == (REOPEN,), "reported once"
    assert m.unload_result(2, t(111), shown=False) == (), "a late no changes nothing"
    assert m.unload_result(2, t(200), shown=True) == (ReportReclaimed("llm", True),), "a late showing counts"
    assert m.unload_result(2, t(201), shown=True) == ()


def test_an_edge_during_an_unload_asks_once_more_after_it() -> None:
    m = machine(OnOwnerReturn.CANCEL, unloads=True)
    m.edge(OWNER, jobs(1), t(10))
    assert cancelled(2) in m.edge(OWNER, jobs(2), t(12)), "work is cut at once all the same"
    m.edge(OWNER, (), t(13))
    effects = m.unload_result(1, t(14), shown=True)
    assert effects == (ReportReclaimed("llm", True), Unload("llm", 2, t(24)), WakeAt("llm", t(24)))
    assert m.unload_result(1, t(15), shown=False) == (), "of the attempt before"
    assert m.unload_result(2, t(16), shown=True) == (REOPEN,)


def test_dialects_that_cannot_unload_make_no_claim() -> None:
    m = UpstreamReclaim(
        upstream(dialect=Dialect.OPENAI, yield_on_veto=True, on_owner_return=OnOwnerReturn.CANCEL)
    )
    effects = m.edge(OWNER, jobs(1), t(10))
    assert not any(isinstance(effect, Unload | ReportReclaimed) for effect in effects)
    assert m.claim is None


def test_the_first_trigger_is_what_borrowers_are_told() -> None:
    m = machine()
    m.edge(PRESSED, jobs(1), t(10), resource="gpu")
    m.edge(OWNER, jobs(1), t(11))
    assert m.refused == {"gpu"}
    assert cancelled(1, reason=PRESSED) in m.tick(t(40))


def test_the_phase_and_its_beginning_can_be_shown() -> None:
    m = machine()
    assert (m.phase, m.since) == (None, None)
    m.edge(OWNER, jobs(1), t(10))
    m.edge(OWNER, jobs(1), t(11))
    assert (m.phase, m.since) == (WAITING, t(10))
    m.tick(t(40))
    assert (m.phase, m.since) == (PROCEEDING, t(40))


class ReclaimAgainstItsHistory(RuleBasedStateMachine):
    """A runner that executes the effects, and a history from which each effect must follow."""

    @initialize(policy=st.sampled_from(OnOwnerReturn), unloads=st.booleans())
    def start(self, policy: OnOwnerReturn, unloads: bool) -> None:
        self.m = UpstreamReclaim(
            upstream(
                on_owner_return=policy,
                yield_on_veto=unloads,
                dialect=Dialect.OLLAMA,
                drain_timeout=Seconds(30),
                completion_timeout=Seconds(60),
            )
        )
        self.policy, self.unloads = policy, unloads
        self.now = 0.0
        self.closed = False
        self.running: dict[int, float] = {}  # admitted when
        self.cut: set[int] = set()
        self.next_job = 0
        self.open_edges: list[float] = []  # answered by the reclaim that waits
        self.affected: set[int] = set()
        self.attempts: list[dict[str, Any]] = []
        self.claims: list[bool] = []

    def execute(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            getattr(self, f"on_{type(effect).__name__}")(effect)

    def on_CloseAdmission(self, _: CloseAdmission) -> None:  # noqa: N802
        self.closed = True

    def on_ReopenAdmission(self, _: ReopenAdmission) -> None:  # noqa: N802
        assert self.closed
        self.closed = False

    def on_WakeAt(self, effect: WakeAt) -> None:  # noqa: N802
        assert effect.at > self.now

    def on_PublishPhase(self, effect: PublishPhase) -> None:  # noqa: N802
        assert list(effect.edges) == self.open_edges
        if effect.phase is WAITING:
            assert self.affected & set(self.running)
            assert self.policy is not OnOwnerReturn.CANCEL
        else:
            self.due = self.policy is OnOwnerReturn.CANCEL or self.now >= self.open_edges[0] + self.patience()
            self.open_edges = []

    def patience(self) -> float:
        return 60.0 if self.policy is OnOwnerReturn.FINISH else 30.0

    def on_CancelWork(self, effect: CancelWork) -> None:  # noqa: N802
        assert self.policy is not OnOwnerReturn.FINISH
        assert self.due, "cut before its time"
        assert set(effect.jobs) == self.affected & set(self.running), (
            "exactly what ran at an edge and still runs"
        )
        assert not set(effect.jobs) & self.cut
        self.cut |= set(effect.jobs)
        for job in effect.jobs:
            del self.running[job]

    def on_Unload(self, effect: Unload) -> None:  # noqa: N802
        assert self.unloads
        assert all(attempt["over"] for attempt in self.attempts), "one attempt at a time"
        assert effect.attempt == len(self.attempts) + 1
        assert effect.deadline == self.now + 10
        self.attempts.append({"asked": self.now, "over": False})

    def on_ReportReclaimed(self, effect: ReportReclaimed) -> None:  # noqa: N802
        assert [effect.shown] != self.claims[-1:], "only changes"
        self.claims.append(effect.shown)

    @rule()
    def admit(self) -> None:
        if not self.closed:
            self.next_job += 1
            self.running[self.next_job] = self.now

    @rule(trigger=st.sampled_from([OWNER, PRESSED]))
    def edge(self, trigger: Reason) -> None:
        if not self.open_edges:
            self.affected = set()
        has_task = bool(self.open_edges) or self.unloads or (
            bool(self.running) and self.policy is not OnOwnerReturn.FINISH
        )  # fmt: skip
        if has_task:
            self.open_edges.append(self.now)
            self.affected |= set(self.running)
        effects = self.m.edge(trigger, jobs(*self.running), t(self.now))
        assert bool(effects) == has_task
        self.execute(effects)

    @rule(data=st.data())
    def job_ends(self, data: st.DataObject) -> None:
        if self.running:
            job = data.draw(st.sampled_from(sorted(self.running)))
            del self.running[job]
            self.execute(self.m.job_ended(JobId(job), t(self.now)))

    @rule(seconds=st.sampled_from([0.5, 5.0, 10.0, 29.5, 60.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        for attempt in self.attempts:
            attempt["over"] = attempt["over"] or self.now >= attempt["asked"] + 10
        self.execute(self.m.tick(t(self.now)))

    @rule()
    def trigger_is_gone(self) -> None:
        waited = bool(self.open_edges)
        effects = self.m.stand_down(t(self.now))
        assert bool(effects) == waited
        assert not any(isinstance(effect, CancelWork | Unload) for effect in effects)
        self.execute(effects)

    @rule(shown=st.booleans(), back=st.integers(0, 1))
    def upstream_answers(self, shown: bool, back: int) -> None:
        number = len(self.attempts) - back
        if number >= 1:
            self.attempts[number - 1]["over"] = True
            self.execute(self.m.unload_result(number, t(self.now), shown=shown))

    @invariant()
    def admission_is_closed_exactly_while_something_is_pending(self) -> None:
        if hasattr(self, "m"):
            pending = self.m.work is Work.WAITING or self.m.unloading is not Unloading.IDLE
            assert self.closed == pending
            assert (self.m.work is Work.WAITING) == bool(self.open_edges)
            assert (self.m.unloading is not Unloading.IDLE) == any(not a["over"] for a in self.attempts)

    @invariant()
    def no_wait_outlives_its_deadline(self) -> None:
        if hasattr(self, "m") and self.open_edges:
            assert self.m.deadline is not None
            assert self.m.deadline <= self.open_edges[0] + self.patience()


TestReclaimAgainstItsHistory = ReclaimAgainstItsHistory.TestCase
