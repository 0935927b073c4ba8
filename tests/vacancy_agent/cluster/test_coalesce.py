"""What is written when, in driven time."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vacancy_agent.cluster.coalesce import Figure, Past, Snapshot, Wait, Write, decide, moved, tried
from vacancy_agent.core.facts import Instant


def report(
    state: str = "lends", counts: str = "0", free: float = 8000.0, *, step: int = 512, lends: bool = True
) -> Snapshot:
    shown = int(free) // step * step
    figures = {"free": Figure(free, free / 10)}
    return Snapshot(state, lends, counts, figures, {"s": state, "c": counts, "free": shown})


def written(snapshot: Snapshot, at: float = 100.0) -> Past:
    return replace(tried(Past(), Instant(at)), written=snapshot, at=Instant(at))


def test_the_first_report_goes_at_once():
    assert decide(Past(), report(), Instant(5.0), 0.5) == Write()


def test_what_did_not_change_is_not_written():
    assert decide(written(report()), report(), Instant(1e9), 0.5) == Wait(None)


def test_a_change_of_state_goes_at_once_after_a_quiet_second():
    assert decide(written(report()), report("owner there"), Instant(102.0), 0.5) == Write()


@pytest.mark.parametrize("jitter", [0.0, 1.0])
def test_two_changes_within_a_second_are_one_second_apart(jitter: float):
    assert decide(written(report()), report("gpu lost"), Instant(100.2), jitter) == Wait(Instant(101.0))


def test_an_owners_return_does_not_wait_but_what_follows_waits_twice():
    gone = report("owner there", lends=False)
    past = written(report())
    assert decide(past, gone, Instant(100.2), 0.0) == Write()
    past = replace(tried(past, Instant(100.2)), written=gone, at=Instant(100.2))
    assert decide(past, report("lends"), Instant(100.4), 0.0) == Wait(Instant(102.0))
    assert decide(past, report("still there", lends=False), Instant(100.4), 0.0) == Wait(Instant(102.0))


def test_a_failed_attempt_counts_for_the_spacing():
    past = tried(written(report()), Instant(200.0))
    assert decide(past, report("gpu lost"), Instant(200.5), 0.0) == Wait(Instant(201.0))


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
    past = replace(written(report()), written=None)
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


changes = st.tuples(
    st.sampled_from(["a", "b", "c"]), st.booleans(), st.sampled_from(["0", "1"]), st.integers(0, 20_000)
)


@settings(max_examples=200)
@given(
    steps=st.lists(
        st.tuples(st.one_of(st.floats(0.0, 1.0), st.floats(0.0, 30.0)), changes, st.booleans()), max_size=40
    ),
    jitter=st.floats(0, 1),
)
def test_attempts_are_one_a_second_and_a_wait_is_never_too_long(
    steps: list[tuple[float, tuple[str, bool, str, int], bool]], jitter: float
):
    """Whatever happens: at most one attempt a second and one ahead, and who waits as told writes then."""
    past, now, attempts = Past(), Instant(0.0), []
    for pause, (state, lends, counts, free), works in steps:
        now = Instant(now + pause)
        current = report(f"{state} {lends}", counts, float(free), lends=lends)
        verdict = decide(past, current, now, jitter)
        if isinstance(verdict, Wait) and verdict.until is not None:
            assert verdict.until > now
            assert decide(past, current, verdict.until, jitter) == Write()
        if isinstance(verdict, Write):
            attempts.append(now)
            past = tried(past, now)
            past = replace(past, written=current, at=now) if works else past
    for index, first in enumerate(attempts):
        assert all(last - first >= ahead - 1.0 - 1e-9 for ahead, last in enumerate(attempts[index:]))


def test_the_texts_that_are_compared_are_plain_json():
    snapshot: Any = report()
    assert json.loads(json.dumps(snapshot.status)) == snapshot.status
