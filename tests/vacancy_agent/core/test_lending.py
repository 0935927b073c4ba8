from __future__ import annotations

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standins.hosts import NOON
from vacancy_agent.core.facts import WallTime
from vacancy_agent.core.lending import By, LocalPause, lending
from vacancy_agent.core.settings import LendingSettings, ScheduleWindow

ALL_DAYS = frozenset(range(7))
BERLIN = "Europe/Berlin"


def at(text: str, zone: str = "UTC", *, fold: int = 0) -> WallTime:
    return WallTime(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp())


def utc(wall: float | None) -> str:
    return "-" if wall is None else datetime.fromtimestamp(wall, UTC).strftime("%m-%dT%H:%M")


def window(start: str, end: str, days: frozenset[int] = ALL_DAYS) -> ScheduleWindow:
    return ScheduleWindow(days, time.fromisoformat(start), time.fromisoformat(end))


def schedule(*windows: ScheduleWindow, zone: str = "UTC") -> LendingSettings:
    return LendingSettings(time_zone=zone, windows=windows)


HOUR = 3600.0


@pytest.mark.parametrize(
    ("settings", "pause", "by", "until", "hint"),
    [
        pytest.param(LendingSettings(), None, None, None, None, id="allowed"),
        pytest.param(
            LendingSettings(enabled=False), None, By.SPEC, None, 300, id="the specification's switch"
        ),
        pytest.param(
            LendingSettings(paused_until=WallTime(NOON + 90)), None, By.CLUSTER, 90, 90, id="cluster"
        ),
        pytest.param(
            LendingSettings(paused_until=WallTime(NOON + 0.5)), None, By.CLUSTER, 0.5, 1, id="at least 1 s"
        ),
        pytest.param(
            LendingSettings(paused_until=WallTime(NOON + HOUR)), None, By.CLUSTER, HOUR, 300, id="at most 300"
        ),
        pytest.param(
            LendingSettings(paused_until=NOON), None, None, None, None, id="a pause ends at its end"
        ),
        pytest.param(LendingSettings(), LocalPause(WallTime(NOON + 60)), By.LOCAL, 60, 60, id="local"),
        pytest.param(LendingSettings(), LocalPause(None), By.LOCAL, None, 300, id="local until resumed"),
        pytest.param(LendingSettings(), LocalPause(NOON), None, None, None, id="an old local pause"),
        pytest.param(
            LendingSettings(paused_until=WallTime(NOON + 60)),
            LocalPause(WallTime(NOON + 90)),
            By.LOCAL,
            90,
            90,
            id="the cluster's end does not lift the local pause",
        ),
        pytest.param(
            LendingSettings(paused_until=WallTime(NOON + 90)),
            LocalPause(WallTime(NOON + 60)),
            By.CLUSTER,
            90,
            90,
            id="the local end does not lift the cluster's pause",
        ),
        pytest.param(
            LendingSettings(paused_until=WallTime(NOON + 90), windows=(window("00:00", "00:00"),)),
            None,
            By.CLUSTER,
            90,
            90,
            id="a pause wins over an open window",
        ),
        pytest.param(schedule(), None, By.SCHEDULE, None, 300, id="no window: never"),
        pytest.param(schedule(window("12:01", "13:00")), None, By.SCHEDULE, 60, 60, id="opens in a minute"),
    ],
)
def test_who_holds_lending_off(settings, pause, by, until, hint):
    answer = lending(settings, pause, NOON)
    assert answer.by is by
    assert answer.allowed is (by is None)
    assert answer.until == (None if until is None else NOON + until)
    if hint is not None:
        assert answer.retry_after(NOON) == hint


NIGHT = schedule(window("22:00", "06:00"))
NIGHT_BERLIN = schedule(window("22:00", "06:00"), zone=BERLIN)
EARLY_BERLIN = schedule(window("02:30", "05:00"), zone=BERLIN)
WEEKDAY_NIGHTS = schedule(window("22:00", "06:00", frozenset(range(5))))


@pytest.mark.parametrize(
    ("settings", "moment", "allowed", "changes"),
    [
        # 2026-03-01 is a Sunday.
        pytest.param(NIGHT, at("2026-03-01T21:59"), False, "03-01T22:00", id="evening"),
        pytest.param(NIGHT, at("2026-03-01T22:00"), True, "03-02T06:00", id="opens"),
        pytest.param(NIGHT, at("2026-03-02T05:59"), True, "03-02T06:00", id="over midnight"),
        pytest.param(NIGHT, at("2026-03-02T06:00"), False, "03-02T22:00", id="closes"),
        pytest.param(
            WEEKDAY_NIGHTS,
            at("2026-03-07T05:00"),
            True,
            "03-07T06:00",
            id="Friday's night reaches into Saturday",
        ),
        pytest.param(
            WEEKDAY_NIGHTS,
            at("2026-03-07T23:00"),
            False,
            "03-09T22:00",
            id="Saturday night is not lent",
        ),
        pytest.param(
            schedule(window("08:00", "08:00")), at("2026-03-01T07:59"), True, "03-01T08:00", id="whole days"
        ),
        pytest.param(
            schedule(window("01:00", "02:00", frozenset({6})), window("05:00", "06:00", frozenset({6}))),
            at("2026-03-01T06:00"),
            False,
            "03-08T01:00",
            id="a week ahead",
        ),
        pytest.param(NIGHT_BERLIN, at("2026-07-01T20:30"), True, "07-02T04:00", id="zone, summer"),
        pytest.param(NIGHT_BERLIN, at("2026-01-15T20:30"), False, "01-15T21:00", id="zone, winter"),
        # Summer time began on 2026-03-29: 02:00 CET became 03:00 CEST (01:00 UTC).
        pytest.param(NIGHT_BERLIN, at("2026-03-29T00:30"), True, "03-29T04:00", id="the short night"),
        pytest.param(
            EARLY_BERLIN, at("2026-03-29T00:59"), False, "03-29T01:00", id="a skipped start is the jump"
        ),
        pytest.param(EARLY_BERLIN, at("2026-03-29T01:00"), True, "03-29T03:00", id="open from the jump on"),
        pytest.param(
            schedule(window("01:00", "02:30"), zone=BERLIN),
            at("2026-03-29T00:59"),
            True,
            "03-29T01:00",
            id="a skipped end is the jump",
        ),
        pytest.param(
            schedule(window("01:00", "02:30"), zone=BERLIN),
            at("2026-03-29T01:00"),
            False,
            "03-29T23:00",
            id="closed from the jump on",
        ),
        # It ended on 2026-10-25: 03:00 CEST became 02:00 CET (01:00 UTC); 02:30 came twice.
        pytest.param(NIGHT_BERLIN, at("2026-10-25T04:59"), True, "10-25T05:00", id="the long night"),
        pytest.param(EARLY_BERLIN, at("2026-10-25T00:30"), True, "10-25T04:00", id="opens the first time"),
        pytest.param(
            EARLY_BERLIN, at("2026-10-25T01:10"), True, "10-25T04:00", id="stays open in the repeated hour"
        ),
        pytest.param(
            schedule(window("00:00", "02:30"), zone=BERLIN),
            at("2026-10-25T00:30"),
            False,
            "10-25T23:00",
            id="closes the first time",
        ),
    ],
)
def test_schedule(settings, moment, allowed, changes):
    answer = lending(settings, None, moment)
    assert answer.allowed is allowed
    assert utc(answer.changes_at) == changes
    if not allowed:
        assert utc(answer.until) == changes


times = st.times().map(lambda t: t.replace(second=0, microsecond=0))
windows = st.lists(
    st.builds(ScheduleWindow, st.frozensets(st.integers(0, 6), max_size=3), times, times), max_size=3
).map(tuple)
moments = st.integers(1_767_225_600, 1_798_761_600).map(lambda s: WallTime(float(s)))


@given(windows, st.sampled_from(["UTC", BERLIN, "America/St_Johns", "Australia/Lord_Howe"]), moments)
def test_the_answer_stands_until_it_says_it_may_change(found, zone, moment):
    settings = LendingSettings(time_zone=zone, windows=found)
    answer = lending(settings, None, moment)
    assert answer.changes_at > moment
    for step in range(1, 8):
        later = WallTime(moment + step * min(answer.changes_at - moment, 7 * 86_400.0) / 8)
        assert lending(settings, None, later).allowed is answer.allowed
    if answer.until is not None:
        assert lending(settings, None, answer.until).allowed


@given(windows, moments)
def test_without_clock_changes_a_schedule_is_what_the_clock_face_says(found, moment):
    local = datetime.fromtimestamp(moment, UTC)
    face, today, yesterday = local.time(), local.weekday(), (local.weekday() - 1) % 7

    def covers(w: ScheduleWindow) -> bool:
        if w.end > w.start:
            return today in w.days and w.start <= face < w.end
        return (today in w.days and face >= w.start) or (yesterday in w.days and face < w.end)

    assert lending(schedule(*found), None, moment).allowed is any(covers(w) for w in found)
