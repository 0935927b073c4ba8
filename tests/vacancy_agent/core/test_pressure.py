"""The guard: single rules by example, all of them together against a model that looks at its whole past."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from vacancy_agent.core.board import Pressure
from vacancy_agent.core.facts import Instant, Percent, Seconds
from vacancy_agent.core.pressure import Guard, PressureEdge, max_gap

LIMIT = Percent(20.0)
LOW, HIGH = Percent(19.9), LIMIT


class Clocked:
    """A guard that is fed every two seconds."""

    def __init__(self, engage: float = 3.0, release: float = 30.0) -> None:
        self.guard = Guard(Seconds(engage), Seconds(release), Seconds(20.0))
        self.now = Instant(100.0)
        self.edges: list[PressureEdge] = []

    def wait(self, seconds: float) -> None:
        self.now = Instant(self.now + seconds)

    def see(self, *loads: Percent, every: float = 2.0, calibrated: bool = True) -> Pressure:
        for load in loads:
            self._note(self.guard.sample(load, LIMIT, self.now, calibrated=calibrated))
            state = self.guard.state
            self.wait(every)
        return state

    def miss(self, times: int = 1, every: float = 2.0) -> Pressure:
        for _ in range(times):
            self._note(self.guard.missed(self.now))
            self.wait(every)
        return self.guard.state

    def _note(self, edge: PressureEdge | None) -> None:
        if edge is not None:
            self.edges.append(edge)


@pytest.fixture
def it() -> Clocked:
    return Clocked()


@pytest.mark.parametrize(("interval", "gap"), [(0.5, 20.0), (2.0, 20.0), (7.0, 21.0), (60.0, 180.0)])
def test_the_gap_is_three_polls_and_at_least_twenty_seconds(interval: float, gap: float) -> None:
    assert max_gap(Seconds(interval)) == gap


def test_nothing_is_known_before_the_first_sample(it: Clocked) -> None:
    assert it.guard.state is Pressure.UNKNOWN
    it.miss(50)
    assert it.edges == [], "there is nothing that was admitted on it"


def test_sustained_load_engages_with_one_edge(it: Clocked) -> None:
    assert it.see(LOW, HIGH) is Pressure.BUILDING
    assert it.see(HIGH) is Pressure.BUILDING
    assert it.see(HIGH) is Pressure.ENGAGED
    assert it.see(*[HIGH] * 20) is Pressure.ENGAGED
    (edge,) = it.edges
    assert (edge.at, edge.unknown_for) == (106.0, None)


def test_a_short_peak_does_not(it: Clocked) -> None:
    for _ in range(20):
        assert it.see(HIGH, HIGH, LOW) is Pressure.CLEAR
    assert it.edges == []


def test_without_a_delay_one_sample_engages() -> None:
    assert Clocked(engage=0.0).see(HIGH) is Pressure.ENGAGED


def test_releases_after_quiet_without_a_break(it: Clocked) -> None:
    it.see(HIGH, HIGH, HIGH)
    assert it.see(*[LOW] * 15) is Pressure.ENGAGED
    it.see(HIGH)
    assert it.see(*[LOW] * 15) is Pressure.ENGAGED
    assert it.see(LOW) is Pressure.CLEAR
    assert len(it.edges) == 1


def test_a_missed_sample_breaks_the_quiet_but_not_the_load(it: Clocked) -> None:
    it.see(HIGH)
    assert it.miss() is Pressure.UNKNOWN
    assert it.see(HIGH) is Pressure.ENGAGED
    it.see(*[LOW] * 14)
    it.miss()
    assert it.see(*[LOW] * 15) is Pressure.ENGAGED
    assert it.see(LOW) is Pressure.CLEAR


def test_samples_too_far_apart_are_not_one_observation(it: Clocked) -> None:
    it.see(HIGH)
    it.wait(18.1)
    assert it.see(HIGH) is Pressure.BUILDING
    assert it.see(HIGH, HIGH) is Pressure.ENGAGED


def test_unknown_refuses_at_once_and_takes_back_after_the_gap_once(it: Clocked) -> None:
    it.see(LOW)
    assert it.miss() is Pressure.UNKNOWN
    it.miss(8)
    assert it.edges == [], "18 s since the last good sample"
    it.miss(10)
    (edge,) = it.edges
    assert (edge.at, edge.unknown_for) == (120.0, 20.0)
    assert "unknown for 20 s" in edge.why


@pytest.mark.parametrize(
    ("missed", "load", "calibrated", "cuts"),
    [
        (1, LOW, True, False),
        (9, LOW, True, False),
        (9, HIGH, True, False),
        (1, LOW, False, True),
    ],
)
def test_a_good_sample_ends_the_unknown_time(
    it: Clocked, missed: int, load: Percent, calibrated: bool, cuts: bool
) -> None:
    it.see(LOW)
    it.miss(missed)
    it.see(load, calibrated=calibrated)
    assert bool(it.edges) is cuts


def test_one_that_comes_too_late_takes_back_at_once(it: Clocked) -> None:
    it.see(LOW)
    it.miss()
    it.wait(20.0)
    assert it.see(LOW) is Pressure.CLEAR
    (edge,) = it.edges
    assert edge.unknown_for == 24.0


def test_one_that_is_engaged_takes_back_at_once(it: Clocked) -> None:
    it.see(HIGH, HIGH, HIGH)
    it.miss()
    it.see(LOW)
    assert [edge.unknown_for for edge in it.edges] == [None, 4.0]


def test_what_was_told_in_the_silence_is_not_told_again_at_its_end(it: Clocked) -> None:
    it.see(LOW)
    it.miss(15)
    it.see(LOW, calibrated=False)
    assert len(it.edges) == 1


def test_silence_without_a_word_is_overdue(it: Clocked) -> None:
    assert not it.guard.overdue(Instant(10_000.0))
    it.see(LOW)
    assert not it.guard.overdue(Instant(119.9))
    assert it.guard.overdue(Instant(120.0))
    it.miss(15)
    assert not it.guard.overdue(it.now), "it was told"
    assert it.guard.unknown_for(it.now) == 32.0


@pytest.mark.parametrize("loads", [[LOW], [LOW, HIGH], [HIGH, HIGH, HIGH]])
def test_suspended_keeps_the_state(it: Clocked, loads: list[Percent]) -> None:
    before = it.see(*loads)
    edges = len(it.edges)
    for _ in range(100):
        it.guard.suspend(it.now)
        it.wait(2.0)
        assert it.guard.state is before
        assert it.guard.suspended
    assert len(it.edges) == edges
    it.see(LOW)
    assert not it.guard.suspended
    assert len(it.edges) == edges, "what was suspended was not unknown"


def test_suspended_before_anything_was_judged_stays_unknown(it: Clocked) -> None:
    it.guard.suspend(it.now)
    assert (it.guard.state, it.guard.suspended) == (Pressure.UNKNOWN, True)


def test_what_was_seen_before_a_sleep_says_nothing_after_it(it: Clocked) -> None:
    it.see(HIGH)
    it.guard.outdate()
    assert it.guard.state is Pressure.UNKNOWN
    it.wait(1.0)
    assert it.see(HIGH) is Pressure.BUILDING


def test_uncalibrated_is_its_own_state(it: Clocked) -> None:
    assert it.see(HIGH, HIGH, HIGH, calibrated=False) is Pressure.CALIBRATING
    assert it.see(HIGH) is Pressure.ENGAGED


Event = tuple[float, str, bool, bool]
"""When, what (valid, missed, suspended, slept), high, calibrated."""


class Past:
    """The dumb one: everything that ever happened, and each answer worked out from that anew."""

    def __init__(self, engage: float, release: float, gap: float) -> None:
        self.engage, self.release, self.gap = engage, release, gap
        self.events: list[Event] = []
        self.edges: list[tuple[float, bool]] = []
        """When, and whether because nothing was known."""
        self.engaged = False

    def add(
        self, at: float, what: str, high: bool = False, calibrated: bool = True
    ) -> tuple[float, bool] | None:
        was_unknown, was_engaged = self.unknown(), self.engaged
        good = self.last_good()
        told = good is not None and any(blind and when > good for when, blind in self.edges)
        self.events.append((at, what, high, calibrated))
        edge = None
        if what == "valid":
            run = self.run_of(high)
            if high and at - run >= self.engage:
                self.engaged = True
            if not high and at - run >= self.release:
                self.engaged = False
            if self.engaged and not was_engaged:
                edge = (at, False)
            elif was_unknown and good is not None and not told and self.must_tell(at - good, calibrated):
                edge = (at, True)
        if what == "missed" and good is not None and not told and at - good >= self.gap:
            edge = (at, True)
        if edge is not None:
            self.edges.append(edge)
        return edge

    def must_tell(self, silent: float, calibrated: bool) -> bool:
        return silent > self.gap or self.engaged or not calibrated

    def run_of(self, high: bool) -> float:
        """When the present stretch of load, or of quiet, began."""
        newest = began = self.events[-1][0]
        for at, what, was_high, _ in reversed(self.events[:-1]):
            if what == "slept" or (what == "valid" and (was_high is not high or newest - at > self.gap)):
                break
            if what == "valid":
                newest = began = at
            elif not high:
                break
        return began

    def last_good(self) -> float | None:
        ever = False
        good = None
        for at, what, _, _ in self.events:
            ever |= what == "valid"
            if what == "valid" or (what == "suspended" and ever):
                good = at
        return good

    def unknown(self) -> bool:
        for _, what, _, _ in reversed(self.events):
            if what in {"missed", "slept"}:
                return True
            if what == "valid":
                return False
            if what == "suspended":
                return self.last_good() is None
        return True

    def state(self) -> Pressure:
        valid = [event for event in self.events if event[1] == "valid"]
        if self.unknown() or not valid:
            return Pressure.UNKNOWN
        if not valid[-1][3]:
            return Pressure.CALIBRATING
        if self.engaged:
            return Pressure.ENGAGED
        slept = [at for at, what, _, _ in self.events if what == "slept"]
        forgotten = bool(slept) and slept[-1] >= valid[-1][0]
        return Pressure.BUILDING if valid[-1][2] and not forgotten else Pressure.CLEAR


class GuardMachine(RuleBasedStateMachine):
    """Both are told the same; both must say the same."""

    @initialize(
        engage=st.sampled_from([0.0, 3.0, 3.0, 10.0, 40.0]), release=st.sampled_from([0.0, 30.0, 30.0, 5.0])
    )
    def begin(self, engage: float, release: float) -> None:
        self.guard = Guard(Seconds(engage), Seconds(release), Seconds(20.0))
        self.past = Past(engage, release, 20.0)
        self.now = 100.0

    @rule(
        after=st.sampled_from([2.0, 2.0, 2.0, 5.0, 19.0, 20.0, 21.0]),
        high=st.booleans(),
        odd=st.integers(0, 9),
    )
    def valid(self, after: float, high: bool, odd: int) -> None:
        self.now += after
        calibrated = odd > 0
        edge = self.guard.sample(HIGH if high else LOW, LIMIT, Instant(self.now), calibrated=calibrated)
        self.same(edge, self.past.add(self.now, "valid", high, calibrated))

    @rule(high=st.booleans(), times=st.integers(3, 20))
    def for_a_while(self, high: bool, times: int) -> None:
        for _ in range(times):
            self.valid(after=2.0, high=high, odd=1)

    @rule(
        high=st.booleans(),
        before=st.integers(1, 14),
        after=st.sampled_from([2.0, 14.0]),
        hole=st.sampled_from(["missed", "suspended"]),
    )
    def with_a_hole(self, high: bool, before: int, after: float, hole: str) -> None:
        """The owner plays, then a stretch in which nothing was seen once, for 20 s at most."""
        for load in (True, True, True, *[high] * before):
            self.valid(after=2.0, high=load, odd=1)
        (self.missed if hole == "missed" else self.suspended)(after=6.0)
        self.valid(after=after, high=high, odd=1)

    @rule(after=st.sampled_from([2.0, 2.0, 6.0, 20.0]))
    def missed(self, after: float) -> None:
        self.now += after
        self.same(self.guard.missed(Instant(self.now)), self.past.add(self.now, "missed"))

    @rule(after=st.sampled_from([2.0, 6.0, 30.0]))
    def suspended(self, after: float) -> None:
        self.now += after
        self.guard.suspend(Instant(self.now))
        self.same(None, self.past.add(self.now, "suspended"))
        assert self.guard.suspended

    @rule(after=st.sampled_from([1.0, 3600.0]))
    def slept(self, after: float) -> None:
        self.now += after
        self.guard.outdate()
        self.same(None, self.past.add(self.now, "slept"))

    def same(self, edge: PressureEdge | None, expected: tuple[float, bool] | None) -> None:
        told = None if edge is None else (edge.at, edge.unknown_for is not None)
        assert told == expected, (told, expected)
        assert self.guard.state is self.past.state()


TestGuardAgainstItsPast = pytest.mark.component(GuardMachine.TestCase)
"""More than 10,000 steps of the guard (a rule takes about four); so many are not for the quick tier."""
TestGuardAgainstItsPast.settings = settings(max_examples=60, stateful_step_count=60)
