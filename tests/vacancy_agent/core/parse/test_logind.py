from __future__ import annotations

import pytest

from vacancy_agent.core.facts import Seconds
from vacancy_agent.core.parse.logind import LogindPropertyError, inhibits_idle, parse_session
from vacancy_agent.core.presence import Session

PROPERTIES: dict[str, object] = {
    "User": [1000, "/org/freedesktop/login1/user/_1000"],
    "Leader": 500,
    "Class": "user",
    "Type": "wayland",
    "State": "active",
    "Active": True,
    "LockedHint": False,
    "Remote": False,
    "Seat": ["seat0", "/org/freedesktop/login1/seat/seat0"],
    "VTNr": 2,
    "IdleHint": True,
    "IdleSinceHintMonotonic": 400_000_000,
    "Name": "somebody",
}


def test_a_session() -> None:
    assert parse_session("3", PROPERTIES, Seconds(1000.0)) == Session(
        key="3",
        uid=1000,
        leader=500,
        cls="user",
        type="wayland",
        state="active",
        active=True,
        locked=False,
        remote=False,
        seat="seat0",
        vtnr=2,
        idle_for=Seconds(600.0),
        ever_hinted=True,
    )


@pytest.mark.parametrize(
    ("hint", "since", "idle_for", "ever"),
    [
        pytest.param(False, 0, None, False, id="never set"),
        pytest.param(False, 400_000_000, None, True, id="cleared: the time is that of the clearing"),
        pytest.param(True, 0, None, True, id="set at an unknown time"),
        pytest.param(True, 2_000_000_000, 0.0, True, id="set after the clock was read"),
    ],
)
def test_the_idle_hint(hint: bool, since: int, idle_for: float | None, ever: bool) -> None:
    changed = {**PROPERTIES, "IdleHint": hint, "IdleSinceHintMonotonic": since}
    session = parse_session("3", changed, Seconds(1000.0))
    assert (session.idle_for, session.ever_hinted) == (idle_for, ever)


@pytest.mark.parametrize("name", sorted(set(PROPERTIES) - {"Name"}))
@pytest.mark.parametrize("value", [None, 7.5, [], [None], b"x"])
def test_a_property_that_is_not_as_documented_is_an_error(name: str, value: object) -> None:
    changed = {key: v for key, v in {**PROPERTIES, name: value}.items() if v is not None}
    with pytest.raises(LogindPropertyError, match=name):
        parse_session("3", changed, Seconds(1000.0))


def test_a_number_is_no_truth() -> None:
    with pytest.raises(LogindPropertyError):
        parse_session("3", {**PROPERTIES, "Active": 1}, Seconds(1000.0))


@pytest.mark.parametrize(
    ("text", "inhibits"),
    [("", False), ("idle", True), ("sleep:idle:shutdown", True), ("sleep", False), ("idle-ish", False)],
)
def test_inhibitors(text: str, inhibits: bool) -> None:
    assert inhibits_idle(text) is inhibits
