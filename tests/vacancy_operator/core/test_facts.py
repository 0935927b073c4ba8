from __future__ import annotations

from standins.operator_world import EPOCH, moment
from vacancy_operator.core.facts import Plan, Wall, rfc3339


def test_times_are_whole_seconds_in_utc() -> None:
    assert rfc3339(Wall(EPOCH + 0.9)) == "2027-01-15T08:00:00Z"
    assert moment(60.0).text == "2027-01-15T08:01:00Z"


def test_a_plan_with_nothing_in_it_is_empty() -> None:
    assert Plan().empty
    assert not Plan(confirm_lease=True).empty
    assert not Plan(status={}).empty
