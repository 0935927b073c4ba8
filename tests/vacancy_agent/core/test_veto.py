from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standins.hosts import seen
from vacancy_agent.core.facts import Evidence, Instant, Seconds
from vacancy_agent.core.veto import Direction, Veto

P, A, U, X = Evidence.PRESENT, Evidence.ABSENT, Evidence.UNCLEAR, Evidence.UNSUPPORTED


@pytest.mark.parametrize(
    ("samples", "engaged"),
    [
        pytest.param([(0, A)], False, id="nobody was ever there"),
        pytest.param([(0, P)], True, id="one match engages"),
        pytest.param([(0, P), (299, A)], True, id="a clear sample before the quiet time is over"),
        pytest.param([(0, P), (300, A)], False, id="quiet for exactly release_after"),
        pytest.param([(0, P), (100, P), (399, A)], True, id="counted from the last match, not the first"),
        pytest.param([(0, P), (100, P), (400, A)], False, id="released after the last match"),
        pytest.param([(0, P), (400, U)], True, id="an unclear sample is not clear"),
        pytest.param([(0, U)], False, id="an unclear sample is not a match"),
        pytest.param([(0, P), (400, X)], False, id="a platform without presence releases"),
        pytest.param([(0, P), (400, A), (401, P)], True, id="engages again"),
    ],
)
def test_engages_on_one_match_and_releases_after_a_quiet_time(
    samples: list[tuple[float, Evidence]], engaged: bool
):
    veto = Veto(Seconds(300))
    for at, evidence in samples:
        veto.observe(seen(evidence, at))
    assert veto.engaged is engaged


def test_edges_come_once_each():
    veto = Veto(Seconds(300))
    edges = [veto.observe(seen(e, at)) for at, e in [(0, A), (1, P), (2, P), (100, A), (302, A), (303, A)]]
    assert [(e.direction, e.at) for e in edges if e] == [(Direction.RISING, 1), (Direction.FALLING, 302)]
    assert veto.since == 302


def test_losing_sight_engages_but_is_no_match():
    veto = Veto(Seconds(300))
    rising = veto.lost_sight(Instant(50), "gone dark")
    assert rising is not None
    assert rising.direction is Direction.RISING
    assert veto.lost_sight(Instant(51), "still dark") is None
    falling = veto.observe(seen(A, 52))
    assert falling is not None, "nobody was seen, so the first clear sample releases"


def test_losing_sight_after_a_recent_match_waits_for_its_quiet_time():
    veto = Veto(Seconds(300))
    veto.observe(seen(P, 0))
    veto.observe(seen(A, 300))
    veto.observe(seen(P, 310))
    veto.lost_sight(Instant(330), "gone dark")
    assert veto.observe(seen(A, 340)) is None
    assert veto.observe(seen(A, 610)) is not None


@given(
    st.lists(st.tuples(st.integers(1, 200), st.sampled_from([P, A, U, X])), max_size=30), st.integers(0, 400)
)
def test_engaged_exactly_as_the_history_says(steps: list[tuple[int, Evidence]], release_after: int):
    """The oracle looks at the whole history each time instead of keeping a state."""
    veto = Veto(Seconds(release_after))
    history: list[tuple[int, Evidence]] = []
    at = 0
    for gap, evidence in steps:
        at += gap
        history.append((at, evidence))
        veto.observe(seen(evidence, at))
        matches = [when for when, what in history if what is P]
        released = matches and any(
            what in {A, X} and when >= matches[-1] + release_after
            for when, what in history
            if when > matches[-1]
        )
        assert veto.engaged == bool(matches and not released)
