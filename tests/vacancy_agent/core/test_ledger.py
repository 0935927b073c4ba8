from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from standins.hosts import START, host, memory, upstream, vacant
from vacancy_agent.core.facts import Instant, ProcessIdentity, Ready
from vacancy_agent.core.job import Hold, Ignored, Job, JobId, Moved, Phase, ReleasedBy
from vacancy_agent.core.ledger import Ledger
from vacancy_agent.core.verdict import Refuse
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from vacancy_agent.core.board import Board

ONE = ProcessIdentity(7, 1.0)
OTHER = ProcessIdentity(7, 2.0)


def at(seconds: float) -> Instant:
    return Instant(START + seconds)


def made(*upstreams: Any) -> tuple[Ledger, Board]:
    settings = host(upstreams)
    board = vacant(settings)
    return Ledger(settings, board), board


def take(ledger: Ledger, name: str = "llm", seconds: float = 0, **more: Any) -> Job:
    got = ledger.reserve(name, at(seconds), borrower="ci", **more)
    assert isinstance(got, Job), got
    return got


def busy(ledger: Ledger, name: str = "llm", seconds: float = 0, **more: Any) -> Refuse:
    got = ledger.reserve(name, at(seconds), borrower="ci", **more)
    assert isinstance(got, Refuse), got
    assert (got.reason, got.retry_after, got.step) == (Reason.RESOURCE_BUSY, 2, 7)
    return got


def read(board: Board, seconds: float, *resources: str) -> None:
    for name in resources or board.settings.resources:
        board.set_capacity(name, Ready(memory(), at(seconds)))


def test_all_resources_or_none() -> None:
    ledger, _ = made(upstream("a", ("gpu", "ram")), upstream("b", ("ram",)), upstream("c", ("gpu",)))
    take(ledger, "b")
    assert busy(ledger, "a").detail == {"resource": "ram", "cause": "in_use"}
    take(ledger, "c")


def test_a_resource_goes_to_one_upstream_for_up_to_its_slots() -> None:
    ledger, _ = made(upstream("a", slots=2), upstream("b", slots=5))
    take(ledger, "a")
    take(ledger, "a")
    busy(ledger, "a")
    busy(ledger, "b")


def test_held_work_keeps_its_slot() -> None:
    ledger, _ = made(upstream(slots=2))
    job = take(ledger)
    take(ledger)
    ledger.hold(job.id, "client gone", at(1))
    busy(ledger)
    assert [(h.id, h.why, h.held_since) for h in ledger.holds()] == [(job.id, "client gone", at(1))]
    assert ledger.active("llm") == {2}


def test_released_exactly_once() -> None:
    ledger, _ = made(upstream(slots=2))
    job = take(ledger)
    take(ledger)
    moved = ledger.release(job.id, ReleasedBy.PROOF, at(1))
    assert isinstance(moved, Moved)
    assert (moved.was, moved.idle, moved.job.released_by) == (Phase.FORWARDING, (), ReleasedBy.PROOF)
    assert ledger.release(job.id, ReleasedBy.PROOF, at(2)) == Ignored(job.id, "no such job")
    assert ledger.hold(job.id, "late", at(2)) == Ignored(job.id, "no such job")
    take(ledger)
    busy(ledger)


@pytest.mark.parametrize(
    ("phase", "by", "allowed"),
    [
        (Phase.FORWARDING, ReleasedBy.PROOF, True),
        (Phase.FORWARDING, ReleasedBy.ADMINISTRATOR, False),
        (Phase.FORWARDING, ReleasedBy.REPLACED, False),
        (Phase.FORWARDING, ReleasedBy.ASSUMED, False),
        (Phase.TRACKING, ReleasedBy.PROOF, True),
        (Phase.TRACKING, ReleasedBy.ADMINISTRATOR, False),
        (Phase.TRACKING, ReleasedBy.REPLACED, True),
        *((Phase.HELD, by, True) for by in ReleasedBy),
    ],
)
def test_what_may_release_in_which_phase(phase: Phase, by: ReleasedBy, allowed: bool) -> None:
    ledger, _ = made()
    job = take(ledger)
    if phase is Phase.TRACKING:
        ledger.track(job.id, at(1))
    if phase is Phase.HELD:
        ledger.hold(job.id, "cut", at(1))
    assert isinstance(ledger.release(job.id, by, at(2)), Moved) is allowed
    assert (ledger.job(job.id) is None) is allowed


def test_after_the_last_job_a_sample_is_needed() -> None:
    ledger, board = made(upstream("a", ("gpu", "ram")))
    moved = ledger.release(take(ledger, "a").id, ReleasedBy.PROOF, at(5))
    assert isinstance(moved, Moved)
    assert moved.idle == ("gpu", "ram")
    assert busy(ledger, "a", 6).needs_sample == ("gpu", "ram")
    read(board, 5, "ram")
    assert busy(ledger, "a", 6).needs_sample == ("gpu", "ram"), "begun no later than the job's end"
    read(board, 6, "ram")
    assert busy(ledger, "a", 6).needs_sample == ("gpu",)
    read(board, 6.5, "gpu")
    take(ledger, "a", 7)


@pytest.mark.parametrize(
    ("name", "model", "resident", "admitted"),
    [
        pytest.param("a", "m", True, True, id="same upstream, same model, proved resident"),
        pytest.param("a", "m", False, False, id="not proved"),
        pytest.param("a", "other", True, False, id="another model"),
        pytest.param("b", "m", True, False, id="another upstream"),
    ],
)
def test_the_wait_falls_away_for_a_resident_model(
    name: str, model: str, resident: bool, admitted: bool
) -> None:
    ledger, _ = made(upstream("a"), upstream("b"))
    ledger.release(take(ledger, "a", model="m").id, ReleasedBy.PROOF, at(5))
    got = ledger.reserve(name, at(6), borrower="ci", model=model, resident=resident)
    assert isinstance(got, Job) is admitted


def test_beside_a_resident_model_another_one_still_waits_for_a_sample() -> None:
    ledger, board = made(upstream(slots=3))
    ledger.release(take(ledger, model="m").id, ReleasedBy.PROOF, at(5))
    take(ledger, seconds=6, model="m", resident=True)
    busy(ledger, seconds=6, model="other")
    read(board, 7)
    take(ledger, seconds=8, model="other")


def test_holds_come_back_after_a_restart() -> None:
    ledger, _ = made(upstream(slots=1), upstream("b", ("gpu",)))
    holds = [
        Hold(JobId(41), "llm", at(-90), "interrupted", "ci", "m", ONE),
        Hold(None, "b", at(-80), "damaged", "?"),
        Hold(JobId(7), "gone from the configuration", at(-70), "interrupted", "ci"),
    ]
    jobs = ledger.restore(holds, at(0))
    assert [job.id for job in jobs] == [41, 42, 7]
    assert {job.phase for job in jobs} == {Phase.HELD}
    busy(ledger)
    ledger.release(jobs[0].id, ReleasedBy.ADMINISTRATOR, at(1))
    busy(ledger)
    moved = ledger.release(jobs[1].id, ReleasedBy.PROOF, at(1))
    assert isinstance(moved, Moved)
    assert moved.idle == ("gpu",)


def test_an_id_is_not_restored_twice() -> None:
    ledger, _ = made()
    hold = Hold(JobId(1), "llm", at(0), "interrupted", "ci")
    with pytest.raises(ValueError, match="there already"):
        ledger.restore([hold, hold], at(0))


def test_a_pending_reclaim_admits_nothing() -> None:
    ledger, _ = made()
    ledger.close("llm", Reason.OWNER_ACTIVE)
    assert busy(ledger).detail == {"cause": "reclaim", "trigger": "owner_active"}
    ledger.reopen("llm")
    ledger.reopen("llm")
    take(ledger)


def test_new_settings_apply_to_the_next_job() -> None:
    ledger, board = made(upstream(slots=1))
    job = take(ledger)
    settings = host([upstream(requires=("gpu", "ram"), slots=2)])
    board.reconfigure(settings)
    ledger.reconfigure(settings)
    assert take(ledger).resources == ("gpu", "ram")
    assert job.resources == ("gpu",)


def test_counts_by_upstream_and_phase() -> None:
    ledger, _ = made(upstream(slots=3))
    first, second = take(ledger), take(ledger)
    take(ledger)
    ledger.track(first.id, at(1))
    ledger.hold(second.id, "cut", at(1))
    assert ledger.counts() == {"llm": {Phase.FORWARDING: 1, Phase.TRACKING: 1, Phase.HELD: 1}}


def test_a04_a_cut_stream_gives_its_slot_back_once_however_it_ends() -> None:
    """BerriAI/litellm#30020: with one slot, every second request found the slot taken by a cut stream."""
    ledger, board = made(upstream(slots=1))
    for round_ in range(100):
        now = round_ * 10.0
        job = take(ledger, seconds=now)
        if round_ % 2:
            ledger.hold(job.id, "client gone", at(now + 1))
        endings = [
            ledger.release(job.id, ReleasedBy.PROOF, at(now + 2 + again)) for again in range(round_ % 3 + 1)
        ]
        assert sum(isinstance(ending, Moved) for ending in endings) == 1
        assert ledger.counts() == {}
        read(board, now + 5)


# Against a model that keeps a list and looks everything up by going through it.

UPSTREAMS = {"a": ("gpu", "ram"), "b": ("gpu",), "c": ("ram", "cpu0"), "d": ("card",)}
SLOTS = {"a": 1, "b": 3, "c": 2, "d": 1}
names = st.sampled_from(sorted(UPSTREAMS))
models = st.sampled_from([None, "m", "n"])


class LedgerAgainstAList(RuleBasedStateMachine):
    """Every rule does the same to both and compares what came of it."""

    def __init__(self) -> None:
        super().__init__()
        ups = [upstream(n, r, slots=SLOTS[n]) for n, r in UPSTREAMS.items()]
        self.ledger, self.board = made(*ups)
        self.now = 1.0
        self.list: list[dict[str, Any]] = []
        self.last_end: dict[str, tuple[float, str, str | None]] = {}
        self.sampled: dict[str, float] = dict.fromkeys(self.board.settings.resources, 0.0)
        self.closed: set[str] = set()

    @initialize(holds=st.lists(st.tuples(names, models), max_size=4))
    def restart(self, holds: list[tuple[str, str | None]]) -> None:
        given = [Hold(JobId(10 * i), n, at(-1), "x", "ci", m, ONE) for i, (n, m) in enumerate(holds)]
        for job in self.ledger.restore(given, at(0)):
            self.list.append(
                {"id": job.id, "up": job.upstream, "phase": "held", "model": job.model, "process": ONE}
            )

    def live(self) -> list[dict[str, Any]]:
        return [row for row in self.list if row["phase"] != "released"]

    @rule(name=names, model=models, resident=st.booleans(), process=st.sampled_from([None, ONE, OTHER]))
    def reserve(self, name: str, model: str | None, resident: bool, process: ProcessIdentity | None) -> None:
        mine = UPSTREAMS[name]
        on = [row for row in self.live() if set(UPSTREAMS[row["up"]]) & set(mine)]
        free = name not in self.closed and all(row["up"] == name for row in on) and len(on) < SLOTS[name]
        unread = [
            r
            for r in mine
            if r in self.last_end
            and self.sampled[r] <= self.last_end[r][0]
            and not (resident and self.last_end[r][1:] == (name, model))
        ]
        got = self.ledger.reserve(
            name, at(self.now), borrower="ci", model=model, resident=resident, process=process
        )
        assert isinstance(got, Job) == (free and not unread)
        if isinstance(got, Job):
            assert got.id not in [row["id"] for row in self.list]
            self.list.append(
                {"id": got.id, "up": name, "phase": "forwarding", "model": model, "process": process}
            )
        elif free:
            assert got.needs_sample == tuple(unread)

    @precondition(lambda self: self.list)
    @rule(data=st.data(), verb=st.sampled_from(["track", "hold", *ReleasedBy]))
    def move(self, data: st.DataObject, verb: str) -> None:
        row = data.draw(st.sampled_from(self.list))
        was = row["phase"]
        allowed = {
            "forwarding": {"track", "hold", "proof"},
            "tracking": {"hold", "proof", "replaced"},
            "held": {"proof", "administrator", "replaced", "assumed"},
            "released": set(),
        }[was]
        if verb == "track":
            outcome = self.ledger.track(row["id"], at(self.now))
        elif verb == "hold":
            outcome = self.ledger.hold(row["id"], "cut", at(self.now))
        elif verb == "proof" and data.draw(st.booleans()):
            self.prove(row, allowed)
            return
        else:
            outcome = self.ledger.release(row["id"], ReleasedBy(verb), at(self.now))
        assert isinstance(outcome, Moved) == (str(verb) in allowed)
        if isinstance(outcome, Moved):
            row["phase"] = {"track": "tracking", "hold": "held"}.get(verb, "released")
            self.settle(row, outcome.idle)

    def prove(self, row: dict[str, Any], allowed: set[str]) -> None:
        job = self.ledger.job(row["id"])
        was_idle = self.ledger.proved(row["id"], at(self.now))
        if "proof" not in allowed:
            assert was_idle == ()
            return
        row["phase"] = "released"
        assert job is not None
        assert (job.phase, job.released_by) == (Phase.RELEASED, ReleasedBy.PROOF)
        assert self.ledger.job(row["id"]) is None
        self.settle(row, was_idle)

    def settle(self, row: dict[str, Any], said_idle: tuple[str, ...]) -> None:
        idle = []
        if row["phase"] == "released":
            for r in UPSTREAMS[row["up"]]:
                if not any(r in UPSTREAMS[other["up"]] for other in self.live()):
                    idle.append(r)
                    self.last_end[r] = (self.now, row["up"], row["model"])
        assert said_idle == tuple(idle)

    @rule(seconds=st.sampled_from([0.0, 1.0, 30.0]), late=st.booleans())
    def sample(self, seconds: float, late: bool) -> None:
        self.now += seconds
        for r in self.sampled:
            self.sampled[r] = max(self.sampled[r], self.now - late)
        read(self.board, self.now - late)

    @rule(name=names)
    def close_or_reopen(self, name: str) -> None:
        if name in self.closed:
            self.closed.discard(name)
            self.ledger.reopen(name)
        else:
            self.closed.add(name)
            self.ledger.close(name, Reason.OWNER_ACTIVE)

    @invariant()
    def both_know_the_same_jobs(self) -> None:
        assert {(j.id, j.upstream, str(j.phase)) for j in self.ledger.jobs()} == {
            (row["id"], row["up"], row["phase"]) for row in self.live()
        }
        for name, counts in self.ledger.counts().items():
            for phase, count in counts.items():
                assert count == sum(row["up"] == name and row["phase"] == phase for row in self.list)


TestLedgerAgainstAList = LedgerAgainstAList.TestCase
