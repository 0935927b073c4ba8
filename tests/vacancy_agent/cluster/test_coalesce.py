"""What is written when, in driven time."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vacancy_agent.cluster.coalesce import Figure, Past, Snapshot, Wait, Write, decide, moved
from vacancy_agent.core.facts import Instant


def report(state: str = "lends", counts: str = "0", free: float = 8000.0, *, step: int = 512) -> Snapshot:
    shown = int(free) // step * step
    return Snapshot(
        state, counts, {"free": Figure(free, free / 10)}, {"s": state, "c": counts, "free": shown}
    )


def written(snapshot: Snapshot, at: float = 100.0) -> Past:
    return Past(Instant(at), snapshot, Instant(at))


def test_the_first_report_goes_at_once():
    assert decide(Past(), report(), Instant(5.0), 0.5) == Write()


def test_what_did_not_change_is_not_written():
    assert decide(written(report()), report(), Instant(1e9), 0.5) == Wait(None)


def test_a_change_of_state_goes_at_once_after_a_quiet_second():
    assert decide(written(report()), report("owner there"), Instant(102.0), 0.5) == Write()


@pytest.mark.parametrize(("jitter", "until"), [(0.0, 101.0), (1.0, 101.1)])
def test_two_changes_within_a_second_are_one_second_apart(jitter: float, until: float):
    verdict = decide(written(report()), report("owner there"), Instant(100.2), jitter)
    assert isinstance(verdict, Wait)
    assert verdict.until == pytest.approx(until)


def test_a_failed_attempt_counts_for_the_spacing():
    past = Past(Instant(200.0), report(), Instant(100.0))
    assert decide(past, report("owner there"), Instant(200.5), 0.0) == Wait(Instant(201.0))


def test_counts_of_work_go_every_ten_seconds():
    assert decide(written(report()), report(counts="1"), Instant(103.0), 0.0) == Wait(Instant(110.0))
    assert decide(written(report()), report(counts="1"), Instant(110.0), 0.0) == Write()


def test_a_number_that_moved_waits_for_five_minutes():
    moved_far = report(free=4000.0)
    assert decide(written(report()), moved_far, Instant(160.0), 0.0) == Wait(Instant(400.0))
    assert decide(written(report()), moved_far, Instant(400.0), 0.0) == Write()


def test_a_number_that_moved_by_less_than_a_tenth_is_never_written_alone():
    assert decide(written(report()), report(free=7300.0), Instant(1e9), 0.0) == Wait(None)


def test_a_number_rides_along_with_a_change_of_state():
    assert decide(written(report()), report("owner there", free=7300.0), Instant(102.0), 0.0) == Write()


def test_a_number_that_moved_by_a_tenth_and_rounds_to_the_same_is_not_written():
    assert decide(written(report(free=520.0)), report(free=1000.0), Instant(1e9), 0.0) == Wait(None)


def test_what_somebody_wrote_over_is_written_again():
    past = Past(Instant(100.0), None, Instant(100.0))
    assert decide(past, report(), Instant(102.0), 0.0) == Write()


def test_a_number_that_is_new_is_a_matter_of_state():
    assert not moved({}, {"free": Figure(1.0, 0.1)})
    assert not moved({"free": Figure(1.0, 0.1)}, {})


fractions = st.floats(-0.0999, 0.0999)


@settings(max_examples=200)
@given(
    start=st.integers(600, 200_000),
    samples=st.lists(fractions, min_size=20, max_size=20),
    jitter=st.floats(0, 1),
    before=st.floats(0, 1e6),
)
def test_memory_that_moves_by_less_than_a_tenth_causes_no_write_in_a_minute(
    start: int, samples: list[float], jitter: float, before: float
):
    past = written(report(free=float(start)), 1000.0)
    for index, share in enumerate(samples):  # a sample every 3 s, whenever the minute begins
        now = Instant(1000.0 + before + 3.0 * index)
        assert decide(past, report(free=start * (1 + share)), now, jitter) == Wait(None)


changes = st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["0", "1"]), st.integers(0, 20_000))


@settings(max_examples=200)
@given(
    steps=st.lists(st.tuples(st.floats(0.0, 30.0), changes, st.booleans()), max_size=40),
    jitter=st.floats(0, 1),
)
def test_attempts_are_a_second_apart_and_a_wait_is_never_too_long(
    steps: list[tuple[float, tuple[str, str, int], bool]], jitter: float
):
    """Whatever happens: two attempts are never closer than a second, and who waits as told writes then."""
    past, now, attempts = Past(), Instant(0.0), []
    for pause, (state, counts, free), works in steps:
        now = Instant(now + pause)
        current = report(state, counts, float(free))
        verdict = decide(past, current, now, jitter)
        if isinstance(verdict, Wait) and verdict.until is not None:
            assert verdict.until > now
            assert decide(past, current, verdict.until, jitter) == Write()
        if isinstance(verdict, Write):
            attempts.append(now)
            past = Past(now, current, now) if works else Past(now, past.written, past.at)
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(attempts))


def test_the_texts_that_are_compared_are_plain_json():
    snapshot: Any = report()
    assert json.loads(json.dumps(snapshot.status)) == snapshot.status
