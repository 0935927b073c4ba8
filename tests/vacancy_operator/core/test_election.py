from __future__ import annotations

from typing import Any

import pytest

from standins.operator_world import moment
from vacancy_operator.core.election import Move, Rival, claim, release, step
from vacancy_operator.core.facts import Instant


def lease(holder: str = "other", renewed: str = "then", duration: int = 15) -> dict[str, Any]:
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": duration}
    return {"metadata": {"name": "l", "resourceVersion": "7"}, "spec": spec}


SEEN = Rival("other then 7", Instant(100.0))

CASES: dict[str, tuple[dict[str, Any] | None, Rival | None, float, Move, Rival | None]] = {
    "1 none": (None, None, 0.0, Move.CREATE, None),
    "2 ours": (lease("me"), None, 0.0, Move.TAKE, None),
    "2 nobody's": (lease(""), SEEN, 0.0, Move.TAKE, None),
    "3 first seen": (lease(), None, 100.0, Move.WAIT, SEEN),
    "3 renewed since": (
        lease(renewed="now"),
        SEEN,
        200.0,
        Move.WAIT,
        Rival("other now 7", Instant(200.0)),
    ),
    "4 silent for its duration": (lease(), SEEN, 115.0, Move.TAKE, SEEN),
    "5 not that long": (lease(), SEEN, 114.9, Move.WAIT, SEEN),
}


@pytest.mark.parametrize("name", CASES)
def test_step(name: str) -> None:
    item, rival, now, move, after = CASES[name]
    assert step(item, "me", rival, Instant(now)) == (move, after)


def test_a_claim_keeps_what_is_ours_and_counts_what_was_not() -> None:
    first = claim(None, "l", "ns", "me", 15, moment(0.25))
    assert first["metadata"] == {"name": "l", "namespace": "ns"}
    assert first["spec"]["renewTime"] == "2027-01-15T08:00:00.250000Z"
    again = claim(first, "l", "ns", "me", 15, moment(5))
    assert again["spec"]["acquireTime"] == first["spec"]["acquireTime"]
    assert again["spec"]["leaseTransitions"] == 1
    theirs = claim(first, "l", "ns", "you", 15, moment(9))
    assert (theirs["spec"]["leaseTransitions"], theirs["spec"]["holderIdentity"]) == (2, "you")
    assert release(theirs)["spec"]["holderIdentity"] == ""
