from __future__ import annotations

import pytest

from vacancy_agent.core.facts import Instant, Percent
from vacancy_agent.core.owner_load import (
    HIDDEN,
    Attributed,
    Failed,
    GpuUser,
    HiddenUsers,
    NotPossible,
    Total,
    busiest,
)

OURS = frozenset({"llm"})


def sample(*users: GpuUser, at: float = 10.0, total: tuple[float, float] | None = None) -> Attributed:
    whole = None if total is None else Total(Percent(total[0]), Instant(total[1]))
    return Attributed("GPU-1", users, Instant(at), whole)


@pytest.mark.parametrize(
    ("engines", "load"),
    [
        ([], 0.0),
        ([{}], 0.0),
        ([{"gfx": 30.0}, {"gfx": 20.0}, {"dec": 45.0}], 50.0),
        ([{"gfx": 80.0}, {"gfx": 70.0}], 100.0),
        ([{"gfx": 10.0, "compute": 60.0}, {"compute": 5.0}], 65.0),
    ],
)
def test_sum_within_an_engine_and_the_busiest_counts(engines: list[dict[str, float]], load: float) -> None:
    assert busiest(engines) == load


def test_what_serves_borrowed_work_is_not_the_owners() -> None:
    one = sample(GpuUser({"sm": 90.0}, OURS), GpuUser({"sm": 7.0}), GpuUser({}))
    assert (one.owner, one.everything, one.seen) == (7.0, 97.0, {"llm"})


def test_what_an_upstream_uses_itself() -> None:
    both = GpuUser({"sm": 30.0}, frozenset({"llm", "aside"}))
    one = sample(GpuUser({"sm": 20.0}, OURS), both, GpuUser({"sm": 40.0}))
    assert (one.of("llm"), one.of("aside"), one.of("other")) == (50.0, 30.0, 0.0)


def test_one_server_can_serve_several() -> None:
    assert sample(GpuUser({}, frozenset({"a", "b"})), GpuUser({}, OURS)).seen == {"a", "b", "llm"}


class TestHiddenUsers:
    """A card that works and lists nobody."""

    def test_two_totals_one_after_the_other_are_needed(self) -> None:
        watch = HiddenUsers()
        first = sample(at=10.0, total=(60.0, 9.0))
        assert watch.judge(first, explained=False) is first
        again = sample(at=12.0, total=(60.0, 9.0))
        assert watch.judge(again, explained=False) is again, "the same total as before"
        assert watch.judge(sample(at=14.0, total=(60.0, 12.0)), explained=False) == NotPossible(HIDDEN)

    def test_a_list_that_showed_nobody_is_believed_no_more_until_it_shows_somebody(self) -> None:
        watch = HiddenUsers()
        for at in (10.0, 12.0):
            watch.judge(sample(at=at, total=(60.0, at)), explained=False)
        idle = sample(at=14.0, total=(0.0, 14.0))
        assert watch.judge(idle, explained=False) == NotPossible(HIDDEN), (
            "an idle card looks like a blind list"
        )
        somebody = sample(GpuUser({}), at=16.0)
        assert watch.judge(somebody, explained=False) is somebody
        assert watch.judge(idle, explained=False) is idle

    def test_a_list_that_once_worked_fails_now(self) -> None:
        watch = HiddenUsers()
        watch.judge(sample(GpuUser({})), explained=False)
        watch.judge(sample(at=10.0, total=(60.0, 9.0)), explained=False)
        assert watch.judge(sample(at=12.0, total=(60.0, 12.0)), explained=False) == Failed(HIDDEN)

    @pytest.mark.parametrize(
        ("between", "explained"),
        [
            (sample(GpuUser({"sm": 1.0}), at=12.0, total=(60.0, 12.0)), False),
            (sample(at=12.0, total=(9.9, 12.0)), False),
            (sample(at=12.0), False),
            (sample(at=12.0, total=(60.0, 12.0)), True),
        ],
    )
    def test_what_explains_it_begins_anew(self, between: Attributed, explained: bool) -> None:
        watch = HiddenUsers()
        watch.judge(sample(at=10.0, total=(60.0, 9.0)), explained=False)
        assert watch.judge(between, explained=explained) is between
        last = sample(at=14.0, total=(60.0, 14.0))
        assert watch.judge(last, explained=False) is last

    def test_a_total_of_another_time_says_nothing(self) -> None:
        watch = HiddenUsers()
        for at in (10.0, 20.0, 30.0, 40.0):
            one = sample(at=at, total=(60.0, at - 6.0))
            assert watch.judge(one, explained=False) is one
