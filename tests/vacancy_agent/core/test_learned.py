"""The learned threshold: bounded above whatever is learned, down at once, up slowly."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vacancy_agent.core.facts import Percent, Seconds
from vacancy_agent.core.learned import BINS, HALF_LIFE_S, Calibration, Learned, Timed

GPU = "GPU-0a11c0de-0000-4000-8000-000000000000"
HOUR, DAY = 3600.0, 86_400.0
CAP = Percent(40.0)


def learned(cap: float = CAP) -> Learned:
    return Learned(GPU, Percent(cap))


def live(one: Learned, load: float, seconds: float, step: float = 60.0) -> None:
    """The owner's load was the same for so long."""
    for _ in range(round(seconds / step)):
        one.observe(Percent(load), Seconds(step))


def test_starts_at_ten_and_is_ready_after_ten_observed_minutes() -> None:
    one = learned()
    assert (one.threshold, one.calibrated) == (10.0, False)
    live(one, 3, 599, step=1)
    assert not one.calibrated
    one.observe(Percent(3.0), Seconds(1.0))
    assert one.calibrated
    assert one.minutes == pytest.approx(10.0)


def test_goes_where_the_owner_usually_is_and_a_little_above_by_two_points_an_hour() -> None:
    one = learned()
    live(one, 15, 1 * HOUR)
    assert one.target == 25.0
    assert one.threshold == pytest.approx(12.0)
    live(one, 15, 5 * HOUR)
    assert one.threshold == pytest.approx(22.0)
    live(one, 15, 5 * HOUR)
    assert one.threshold == 25.0


def test_a_spike_cannot_raise_it_past_the_cap_however_long_it_lasts() -> None:
    one = learned()
    live(one, 100, 60 * DAY, step=600.0)
    assert one.target == one.threshold == CAP


def test_a_spike_of_an_hour_in_a_quiet_week_teaches_nothing() -> None:
    one = learned()
    live(one, 2, 7 * DAY, step=600.0)
    live(one, 99, 1 * HOUR)
    assert one.target == 12.0
    assert one.threshold <= 12.0


def test_a_quiet_week_lowers_it_at_once() -> None:
    """A month with a game for two hours of each day, then none: what was learned falls in one step."""
    one = learned()
    for _ in range(30):
        live(one, 1, 22 * HOUR, step=600.0)
        live(one, 90, 2 * HOUR, step=600.0)
    assert one.threshold == CAP
    seen = []
    for _ in range(7 * 24):
        live(one, 1, 1 * HOUR, step=600.0)
        seen.append(one.threshold)
    assert seen[-1] == 11.0
    falls = [(before, after) for before, after in pairwise(seen) if after < before]
    assert falls == [(CAP, 11.0)], "not by two points an hour, as it rises"


def test_what_is_a_week_of_observation_old_counts_half() -> None:
    one = learned()
    one.observe(Percent(50.0), Seconds(100.0))
    one.observe(Percent(0.0), Seconds(HALF_LIFE_S))
    assert one.saved().bins[50] == pytest.approx(50.0)


@given(
    st.lists(st.tuples(st.floats(-5, 105), st.floats(0, 20)), max_size=60),
    st.floats(10, 100),
    st.floats(10, 100),
)
def test_is_always_within_its_bounds_and_rises_slowly(
    loads: list[tuple[float, float]], cap: float, later: float
) -> None:
    one = learned(cap)
    for number, (load, seconds) in enumerate(loads):
        before = one.threshold
        if number == len(loads) // 2:
            one.recap(Percent(later))
        one.observe(Percent(load), Seconds(seconds))
        assert 10.0 <= one.threshold <= one.cap
        assert one.threshold <= before + 2.0 * seconds / HOUR + 1e-9
        assert seconds == 0 or one.threshold <= one.target


def test_the_percentile_is_that_of_a_plain_sort() -> None:
    """With so little time that nothing decays to speak of."""
    dice = random.Random(5)  # noqa: S311 - a test
    loads = sorted(dice.randrange(101) for _ in range(1000))
    one = learned(100)
    for load in loads:
        one.observe(Percent(load), Seconds(0.001))
    assert one.target == min(100, loads[949] + 10)


def test_a_restart_goes_on_where_it_was() -> None:
    one = learned()
    live(one, 15, 2 * HOUR)
    again = Learned.restore(one.saved(), CAP)
    assert (again.threshold, again.observed, again.target) == (one.threshold, one.observed, one.target)
    live(one, 20, 1 * HOUR)
    live(again, 20, 1 * HOUR)
    assert again.saved() == one.saved()


def test_a_lower_cap_is_in_force_at_once() -> None:
    one = learned()
    live(one, 90, 40 * HOUR)
    assert Learned.restore(one.saved(), Percent(20.0)).threshold == 20.0
    one.recap(Percent(15.0))
    assert one.threshold == one.target == 15.0


KEPT = Calibration(GPU, (1.0,) * BINS, Seconds(5.0), Percent(12.0))


@pytest.mark.parametrize(
    ("kept", "fits"),
    [
        (KEPT, True),
        (replace(KEPT, device="GPU-1"), False),
        (replace(KEPT, version=2), False),
        (replace(KEPT, bins=(1.0,) * 100), False),
        (replace(KEPT, bins=(float("nan"),) * BINS), False),
        (replace(KEPT, bins=(-1.0,) * BINS), False),
        (replace(KEPT, observed=Seconds(-1.0)), False),
    ],
)
def test_what_is_taken_over_is_of_this_device_and_model(kept: Calibration, fits: bool) -> None:
    assert kept.fits(GPU) is fits


def test_time_nobody_observed_teaches_nothing() -> None:
    timed = Timed(Seconds(20.0))
    assert [timed.since_last(Seconds(at)) for at in (5.0, 7.0, 27.0, 48.0, 48.0, 40.0, 42.0)] == [
        0.0,
        2.0,
        20.0,
        0.0,
        0.0,
        0.0,
        2.0,
    ]
    timed.interrupt()
    assert timed.since_last(Seconds(44.0)) == 0.0
