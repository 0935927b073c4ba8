"""What a sample may do, by where it came from; whether pressure applies; what is learned, and what is not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from standins.hosts import host, resource, upstream
from standins.pressed import DEFAULT, FIXED, GPU, LEARNED, OFF, OURS, READY, Pressed, load, settings
from vacancy_agent.core.board import Pressure
from vacancy_agent.core.facts import Instant, Percent, Seconds, Unknown
from vacancy_agent.core.owner_load import (
    Attributed,
    Failed,
    GpuUser,
    NotPossible,
    Total,
)
from vacancy_agent.core.pressures import Around, Outcome
from vacancy_agent.core.settings import HostSettings, PressureSettings, ResourceType

if TYPE_CHECKING:
    from vacancy_agent.core.learned import Calibration


class TestWhetherItApplies:
    def test_not_where_it_is_off(self) -> None:
        it = Pressed(OFF)
        it.see(load(99), times=5)
        assert (it.state, "gpu" in it.board.pressure_view) == (Pressure.OFF, False)

    @pytest.mark.parametrize("pressure", [DEFAULT, LEARNED, FIXED])
    def test_nothing_is_admitted_on_a_load_nobody_looked_at(self, pressure: PressureSettings) -> None:
        it = Pressed(pressure)
        assert (it.state, it.shown) == (Pressure.UNKNOWN, "unknown")

    def test_neither_written_nor_possible_is_off_and_says_why(self) -> None:
        it = Pressed(DEFAULT)
        it.see(NotPossible("Not Supported"))
        assert (it.state, it.shown, it.why) == (Pressure.OFF, "off", "Not Supported")
        it.see(Failed("it hung"), times=30)
        assert (it.state, it.edges) == (Pressure.OFF, [])

    @pytest.mark.parametrize("pressure", [LEARNED, FIXED])
    def test_written_and_not_possible_fails_closed(self, pressure: PressureSettings) -> None:
        it = Pressed(pressure)
        it.see(NotPossible("Not Supported"))
        assert (it.state, it.why) == (Pressure.UNKNOWN, "Not Supported")

    def test_a_failure_is_no_proof_that_it_cannot_be(self) -> None:
        it = Pressed(DEFAULT)
        it.see(Failed("it hung"))
        assert it.state is Pressure.UNKNOWN

    def test_once_possible_it_is_required(self) -> None:
        it = Pressed(DEFAULT)
        it.see(load(1))
        assert it.state is Pressure.CALIBRATING
        it.see(NotPossible("Not Supported"))
        assert it.state is Pressure.UNKNOWN

    def test_off_is_not_for_ever(self) -> None:
        it = Pressed(DEFAULT)
        it.see(NotPossible("no driver yet"))
        it.see(load(1))
        assert it.state is Pressure.CALIBRATING

    def test_a_card_that_works_and_lists_nobody_cannot_be_told_apart(self) -> None:
        """A container without the host's process ids."""
        it = Pressed(DEFAULT)
        nobody = Attributed(GPU, (), Instant(0.0), Total(Percent(80.0), Instant(0.0)))
        it.see(nobody, times=3)
        assert it.state is Pressure.OFF
        assert "hostPID" in it.why
        it.see(times=3)
        assert it.state is Pressure.OFF, "an idle card with an empty list is no news"
        required = Pressed(LEARNED)
        required.see(nobody, times=3)
        assert required.state is Pressure.UNKNOWN

    def test_borrowed_work_that_the_kernel_does_not_count_is_not_held_against_the_list(self) -> None:
        """ROCm: its process has the card open, the card works, and no engine was used."""
        it = Pressed(LEARNED, READY)
        it.working = OURS
        busy = Attributed(GPU, (GpuUser({}, OURS),), Instant(0.0), Total(Percent(99.0), Instant(0.0)))
        it.see(busy, times=20)
        assert (it.state, it.edges) == (Pressure.CLEAR, [])
        it.working = frozenset()
        it.see(busy, times=3)
        assert it.state is Pressure.UNKNOWN, "now it is somebody else's"


class TestLearned:
    def test_calibrates_in_ten_observed_minutes_and_shows_how_far_it_is(self) -> None:
        it = Pressed(DEFAULT)
        it.see(load(3), times=151)
        assert (it.state, it.board.pressure_view["gpu"].calibrated_minutes) == (Pressure.CALIBRATING, 5.0)
        it.see(load(3), times=149)
        assert it.state is Pressure.CALIBRATING
        it.see(load(3))
        assert it.state is Pressure.CLEAR
        view = it.board.pressure_view["gpu"]
        assert (view.shown, view.calibrated_minutes, view.load, view.why) == ("clear", 10.0, 3.0, "")
        assert view.threshold == pytest.approx(10.33, abs=0.01), "on its way to 13, by two points an hour"

    def test_the_owners_load_engages_and_borrowed_load_does_not(self) -> None:
        it = Pressed(DEFAULT, READY)
        it.working = OURS
        it.see(load(2, ours=95), times=30)
        assert (it.state, it.edges) == (Pressure.CLEAR, [])
        it.see(load(60, ours=35))
        assert (it.state, it.shown) == (Pressure.BUILDING, "clear")
        it.see(load(60, ours=35), times=2)
        assert (it.state, it.shown, len(it.edges)) == (Pressure.ENGAGED, "engaged", 1)
        it.see(load(2), times=16)
        assert it.state is Pressure.CLEAR

    def test_borrowed_load_teaches_nothing(self) -> None:
        it = Pressed(DEFAULT, READY)
        it.working = OURS
        it.see(load(0, ours=100), times=5000)
        assert it.pressures.calibrations()["gpu"].threshold == 10.0

    @pytest.mark.parametrize(
        "spoil",
        [
            pytest.param(lambda it: setattr(it, "fresh", False), id="presence is stale"),
            pytest.param(lambda it: setattr(it, "working", OURS), id="borrowed work of an unseen process"),
        ],
    )
    def test_nothing_is_learned_while(self, spoil: Any) -> None:
        it = Pressed(DEFAULT, READY)
        it.see(load(50), times=2)
        if spoil:
            spoil(it)
        it.see(load(50), times=8)
        before = it.pressures.calibrations()["gpu"].observed
        it.see(load(50), times=100)
        assert it.pressures.calibrations()["gpu"].observed == before

    def test_nothing_is_learned_while_presence_cannot_be_read(self) -> None:
        it = Pressed(DEFAULT, READY)
        it.see(load(50), times=2)
        it.fresh = False
        it.board.set_presence(Unknown("no bus"), Instant(it.now))
        before = it.pressures.calibrations()["gpu"].observed
        it.see(load(50), times=100)
        assert it.pressures.calibrations()["gpu"].observed == before

    def test_a_missed_sample_is_not_observed_time(self) -> None:
        it = Pressed(DEFAULT, READY)
        it.see(load(1), times=2)
        it.see(Failed("it hung"))
        it.see(load(1))
        assert it.pressures.calibrations()["gpu"].observed == 602.0

    def test_sleep_is_not_observed_time(self) -> None:
        it = Pressed(DEFAULT, READY)
        it.see(load(1), times=2)
        it.now += 8 * 3600
        it.pressures.outdate()
        assert (it.state, it.why) == (Pressure.UNKNOWN, "the machine slept")
        it.see(load(1))
        assert it.pressures.calibrations()["gpu"].observed == 602.0
        it.now += 10.0
        it.see(load(1))
        assert it.pressures.calibrations()["gpu"].observed == 604.0, "a short sleep that nobody announced"

    def test_a_total_teaches_nothing_and_judges_nothing(self) -> None:
        it = Pressed(LEARNED, READY)
        it.see(Total(Percent(3.0), Instant(0.0)), times=3)
        assert it.state is Pressure.UNKNOWN
        assert "only the total load" in it.why


class TestWhatWasKept:
    def test_is_taken_over_for_the_same_device(self) -> None:
        it = Pressed(DEFAULT, READY)
        assert it.see(load(1)).discarded is None
        assert it.state is Pressure.CLEAR

    @pytest.mark.parametrize(
        ("kept", "why"),
        [
            (replace(READY, device="GPU-other"), "another device"),
            (replace(READY, version=99), "another version, or damaged"),
            (replace(READY, bins=()), "another version, or damaged"),
        ],
    )
    def test_is_discarded_otherwise_and_that_is_told_once(self, kept: Calibration, why: str) -> None:
        it = Pressed(DEFAULT, kept)
        assert it.see(load(1)).discarded == why
        assert it.state is Pressure.CALIBRATING
        assert it.see(load(1)).discarded is None

    def test_stays_kept_while_the_device_does_not_show_itself(self) -> None:
        it = Pressed(DEFAULT, READY)
        it.see(Failed("it hung"))
        assert it.pressures.calibrations() == {"gpu": READY}

    def test_a_card_that_was_changed_while_the_agent_ran_is_learned_anew(self) -> None:
        it = Pressed(DEFAULT, READY)
        it.see(load(1), times=2)
        assert it.see(load(1, device="GPU-new")).discarded == "another device"
        assert it.state is Pressure.CALIBRATING


class TestFixedWithATotal:
    BUSY = Total(Percent(80.0), Instant(0.0))
    IDLE = Total(Percent(3.0), Instant(0.0))

    def test_judges_while_no_borrowed_work_runs(self) -> None:
        it = Pressed(FIXED)
        it.see(self.IDLE, times=2)
        assert it.state is Pressure.CLEAR
        it.see(self.BUSY, times=3)
        assert (it.state, len(it.edges)) == (Pressure.ENGAGED, 1)
        assert it.board.pressure_view["gpu"].threshold == 20.0
        assert it.board.pressure_view["gpu"].calibrated_minutes is None

    @pytest.mark.parametrize("before", [IDLE, BUSY])
    def test_is_suspended_while_it_does_and_just_after(self, before: Total) -> None:
        it = Pressed(FIXED)
        it.see(before, times=3)
        state, edges = it.state, len(it.edges)
        it.working = OURS
        it.board.work_began("gpu")
        it.see(self.BUSY, times=50)
        assert (it.state, it.shown, len(it.edges)) == (state, "suspended", edges)
        it.working = frozenset()
        it.board.work_ended("gpu", Instant(it.now + 1.0))
        it.see(self.BUSY)
        assert (it.state, it.shown) == (state, "suspended"), "an average that still contains it"
        it.see(self.IDLE)
        assert (it.state, it.shown == "suspended") == (state, False)

    def test_the_same_reading_twice_is_one(self) -> None:
        it = Pressed(FIXED)
        around = Around(Instant(1000.0), Seconds(500.0))
        for _ in range(20):
            outcome = it.pressures.observe("gpu", Total(Percent(80.0), Instant(990.0)), around)
            assert outcome == Outcome()
        assert it.state is Pressure.BUILDING

    def test_a_load_by_process_judges_all_the_while(self) -> None:
        it = Pressed(FIXED)
        it.working = OURS
        it.see(load(50, ours=50), times=3)
        assert it.state is Pressure.ENGAGED


class TestSilence:
    def test_is_told_with_its_length(self) -> None:
        it = Pressed(DEFAULT, READY)
        it.see(load(1))
        it.see(Failed("it hung"), times=10)
        (outcome,) = it.edges
        assert outcome.edge is not None
        assert outcome.edge.unknown_for == 20.0
        assert it.why == "it hung; unknown for 20 s"

    def test_of_a_probe_that_hangs_is_noticed_by_the_clock(self) -> None:
        it = Pressed(DEFAULT, READY)
        it.see(load(1))
        assert list(it.pressures.tick(Instant(it.now + 19.9))) == []
        ((name, edge),) = it.pressures.tick(Instant(it.now + 20.0))
        assert (name, edge.unknown_for, it.state) == ("gpu", 20.0, Pressure.UNKNOWN)
        assert list(it.pressures.tick(Instant(it.now + 25.0))) == []

    def test_where_pressure_does_not_apply_is_nothing(self) -> None:
        it = Pressed(DEFAULT)
        it.see(NotPossible("Not Supported"))
        assert list(it.pressures.tick(Instant(it.now + 1000.0))) == []


class TestUnseenWork:
    def test_is_told_once_after_three_samples_and_cleared_when_seen(self) -> None:
        it = Pressed(DEFAULT, READY)
        it.see(load(1), times=5)
        it.working = OURS
        assert [it.see(load(1)).unseen for _ in range(5)] == [(), (), ("llm",), (), ()]
        assert it.board.unseen_gpu_work == {"llm"}
        it.see(load(1, ours=0))
        assert it.board.unseen_gpu_work == set()
        assert [it.see(load(1)).unseen for _ in range(3)] == [(), (), ("llm",)], "and again"

    def test_is_none_where_the_server_is_on_another_host(self) -> None:
        it = Pressed(DEFAULT, READY)
        it.working, it.local = OURS, frozenset()
        assert [it.see(load(1)).unseen for _ in range(4)] == [(), (), (), ()]

    def test_without_work_nothing_has_to_be_seen(self) -> None:
        it = Pressed(DEFAULT, READY)
        it.see(load(1), times=10)
        assert it.board.unseen_gpu_work == set()

    def test_an_upstream_that_is_gone_is_not_suspect_any_more(self) -> None:
        it = Pressed(DEFAULT, READY)
        it.working = OURS
        it.see(load(1), times=3)
        new = host([upstream("other")], [resource(pressure=DEFAULT)])
        it.board.reconfigure(new)
        it.pressures.reconfigure(new)
        assert it.board.unseen_gpu_work == set()


class TestReload:
    def again(self, it: Pressed, new: HostSettings) -> None:
        it.board.reconfigure(new)
        it.pressures.reconfigure(new)

    def test_keeps_the_guard_of_what_did_not_change(self) -> None:
        it = Pressed(DEFAULT, READY)
        it.see(load(60), times=3)
        assert it.state is Pressure.ENGAGED
        more = host([upstream()], [resource(pressure=DEFAULT), resource("ram", ResourceType.MEMORY)])
        self.again(it, more)
        assert (it.state, it.shown) == (Pressure.ENGAGED, "engaged")

    def test_judges_anew_by_other_rules_and_keeps_what_was_learned(self) -> None:
        it = Pressed(DEFAULT, replace(READY, threshold=Percent(30.0)))
        it.see(load(60), times=3)
        self.again(it, settings(replace(DEFAULT, cap=Percent(15.0))))
        assert it.state is Pressure.UNKNOWN
        it.see(load(1))
        assert it.state is Pressure.CLEAR
        threshold = it.board.pressure_view["gpu"].threshold
        assert threshold is not None
        assert threshold <= 15.0

    def test_forgets_what_was_learned_of_another_device_and_says_so(self) -> None:
        it = Pressed(DEFAULT, READY)
        it.see(load(1))
        self.again(it, settings(DEFAULT, device="GPU-new"))
        assert it.see(load(1, device="GPU-new")).discarded == "another device"

    def test_a_resource_that_comes_back_goes_on_where_it_was(self) -> None:
        it = Pressed(DEFAULT, READY)
        it.see(load(1), times=3)
        self.again(it, host([upstream(requires=("ram",))], [resource("ram", ResourceType.MEMORY)]))
        it.see(load(1))
        self.again(it, settings(DEFAULT))
        assert it.see(load(1)).discarded is None
        assert it.state is Pressure.CLEAR

    @pytest.mark.parametrize("new", [settings(OFF), settings(DEFAULT, enabled=False)])
    def test_one_that_is_off_now_is_judged_no_more(self, new: HostSettings) -> None:
        it = Pressed(DEFAULT, READY)
        it.see(load(60), times=3)
        self.again(it, new)
        it.see(load(60))
        assert it.state is Pressure.OFF
