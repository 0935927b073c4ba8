from __future__ import annotations

from typing import Any

import pytest

from standins.operator_world import moment
from vacancy_operator.core.connection import Connection, Judged, confirmed, judge, last_seen, observe
from vacancy_operator.core.facts import Instant, Sight

NEW, KEPT, LOST, DOUBT = Connection.NOT_JOINED, Connection.CONNECTED, Connection.LOST, Connection.DOUBT


def lease(renewed: float | None, holder: str = "agent", duration: int | None = 40) -> dict[str, Any]:
    spec = {} if renewed is None else {"holderIdentity": holder, "renewTime": moment(renewed).text}
    return {"metadata": {"name": "lh-box"}, "spec": {**spec, "leaseDurationSeconds": duration}}


def sight(renewed: float | None, at: float, *, fresh: bool, asked: float | None = None) -> Sight:
    renewal = "" if renewed is None else f"agent {moment(renewed).text}"
    return Sight(renewal, moment(at), fresh, None if asked is None else moment(asked).instant)


def test_a_renewal_counts_from_when_it_was_seen() -> None:
    first = observe(None, lease(5.0), moment(100.0))
    assert first == sight(5.0, 100.0, fresh=False)
    assert observe(first, lease(5.0), moment(130.0)) == first
    assert observe(first, lease(6.0), moment(130.0)) == sight(6.0, 130.0, fresh=True)


def test_a_lease_that_was_made_empty_hides_no_past() -> None:
    empty = observe(None, lease(None), moment(1.0))
    assert empty == sight(None, 1.0, fresh=True)
    assert observe(empty, lease(5.0), moment(6.0)) == sight(5.0, 6.0, fresh=True)


def test_a_deleted_lease_changes_nothing_that_was_seen() -> None:
    seen = sight(5.0, 5.0, fresh=True)
    assert observe(seen, None, moment(9.0)) is seen
    assert observe(None, None, moment(9.0)) is None
    assert confirmed(None, moment(9.0)) is None


# sight, lease, before, contact since, asked at -> verdict, looked at again at
CASES: dict[str, tuple[Sight | None, dict[str, Any] | None, Connection, float | None, float, Judged]] = {
    "1 nothing seen": (None, None, NEW, 0.0, 99.0, Judged(NEW)),
    "1 nothing seen yet of one that was connected": (None, None, KEPT, 0.0, 99.0, Judged(KEPT)),
    "1 an empty Lease": (sight(None, 0.0, fresh=True), lease(None), NEW, 0.0, 99.0, Judged(NEW)),
    "1 an empty Lease of a lost one": (
        sight(None, 0.0, fresh=True),
        lease(None),
        LOST,
        0.0,
        99.0,
        Judged(LOST),
    ),
    "2 given back": (sight(5.0, 5.0, fresh=True), lease(5.0, holder=""), KEPT, 0.0, 6.0, Judged(LOST)),
    "3 seen to come": (
        sight(5.0, 5.0, fresh=True),
        lease(5.0),
        NEW,
        0.0,
        44.9,
        Judged(KEPT, moment(45.0).instant),
    ),
    "3 a returned one": (
        sight(5.0, 5.0, fresh=True),
        lease(5.0),
        LOST,
        0.0,
        6.0,
        Judged(KEPT, moment(45.0).instant),
    ),
    "3 there at start, was connected": (
        sight(5.0, 50.0, fresh=False),
        lease(5.0),
        KEPT,
        0.0,
        60.0,
        Judged(KEPT, moment(90.0).instant),
    ),
    "3 there at start, was lost": (
        sight(5.0, 50.0, fresh=False),
        lease(5.0),
        LOST,
        0.0,
        60.0,
        Judged(LOST, moment(90.0).instant),
    ),
    "3 contact is young": (
        sight(5.0, 5.0, fresh=True),
        lease(5.0),
        KEPT,
        150.0,
        160.0,
        Judged(KEPT, moment(190.0).instant),
    ),
    "3 its own duration": (
        sight(5.0, 5.0, fresh=True),
        lease(5.0, duration=10),
        KEPT,
        0.0,
        14.0,
        Judged(KEPT, moment(15.0).instant),
    ),
    "4 no contact": (sight(5.0, 5.0, fresh=True), lease(5.0), KEPT, None, 99.0, Judged(KEPT)),
    "5 not asked": (sight(5.0, 5.0, fresh=True), lease(5.0), KEPT, 0.0, 45.0, Judged(DOUBT)),
    "5 asked too early": (
        sight(5.0, 5.0, fresh=True, asked=44.0),
        lease(5.0),
        KEPT,
        0.0,
        45.0,
        Judged(DOUBT),
    ),
    "6 asked": (sight(5.0, 5.0, fresh=True, asked=45.0), lease(5.0), KEPT, 0.0, 45.1, Judged(LOST)),
    "6 was lost, need not ask": (sight(5.0, 5.0, fresh=True), lease(5.0), LOST, 0.0, 99.0, Judged(LOST)),
    "6 its Lease was deleted": (sight(5.0, 5.0, fresh=True, asked=46.0), None, KEPT, 0.0, 46.1, Judged(LOST)),
}


@pytest.mark.parametrize("name", CASES)
def test_judge(name: str) -> None:
    seen, item, before, contact, at, expected = CASES[name]
    since = None if contact is None else Instant(moment(contact).instant)
    assert judge(seen, item, before, since, moment(at)) == expected


def test_last_seen_is_the_operators_time_where_it_has_one() -> None:
    assert last_seen(sight(5.0, 7.0, fresh=True), lease(5.0)) == moment(7.0).text
    assert last_seen(sight(5.0, 50.0, fresh=False), lease(5.0)) == moment(5.0).text
    assert last_seen(sight(None, 5.0, fresh=True), lease(None)) is None
    assert last_seen(None, None) is None
