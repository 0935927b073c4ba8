from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.hosts import NOON, START, host, seen, vacant
from vacancy_agent.core.board import Board
from vacancy_agent.core.conditions import (
    Condition,
    Conditions,
    Finding,
    Status,
    config_finding,
    lendable_finding,
    presence_finding,
    reclaimed_finding,
)
from vacancy_agent.core.facts import Evidence, Instant, Presence, Ready, Unknown, WallTime
from vacancy_agent.core.lendable import host_lendable
from vacancy_agent.core.settings import OwnerSettings
from vacancy_api.reasons import ConditionType

if TYPE_CHECKING:
    from collections.abc import Callable

LENDABLE = ConditionType.LENDABLE


def later(seconds: float) -> WallTime:
    return WallTime(NOON + seconds)


def test_only_changes_come_out_and_since_follows_the_status() -> None:
    conditions = Conditions()
    no = Finding(LENDABLE, Status.FALSE, "OwnerActive", "x")
    assert conditions.set(no, NOON) == Condition(LENDABLE, Status.FALSE, "OwnerActive", "x", NOON)
    assert conditions.set(no, later(3)) is None
    other = conditions.set(Finding(LENDABLE, Status.FALSE, "ResourceDisabled", "y"), later(6))
    assert other is not None
    assert other.since == NOON, "still not lendable since noon"
    yes = conditions.set(Finding(LENDABLE, Status.TRUE, "WouldAdmit", "z"), later(9))
    assert yes is not None
    assert yes.since == later(9)
    assert conditions.all() == (yes,)


def test_in_the_order_of_the_contract() -> None:
    conditions = Conditions()
    for kind in (ConditionType.RECLAIMED, LENDABLE, ConditionType.CONFIG_APPLIED):
        conditions.set(Finding(kind, Status.TRUE, "X", ""), NOON)
    assert [c.type for c in conditions.all()] == [
        ConditionType.CONFIG_APPLIED,
        LENDABLE,
        ConditionType.RECLAIMED,
    ]


def test_lendable_speaks_without_numbers() -> None:
    board = vacant()
    assert lendable_finding(host_lendable(board, START, NOON)).status is Status.TRUE
    board.set_capacity("gpu", Unknown("no driver"))
    found = lendable_finding(host_lendable(board, START, NOON))
    assert (found.status, found.reason) == (Status.FALSE, "ResourceUnmeasured")
    assert not any(char.isdigit() for char in found.message)


def _saw(presence: Presence) -> Callable[[Board], None]:
    return lambda board: _set(board, Ready(presence, START))


def _set(board: Board, reading: Ready[Presence] | Unknown) -> None:
    board.set_presence(reading, START)


@pytest.mark.parametrize(
    ("act", "status", "reason"),
    [
        (_saw(Presence(Evidence.ABSENT, "x")), Status.TRUE, "Reporting"),
        (_saw(Presence(Evidence.PRESENT, "x")), Status.TRUE, "Reporting"),
        (_saw(Presence(Evidence.PRESENT, "x", hint_missing=True)), Status.FALSE, "IdleHintNeverReported"),
        (_saw(Presence(Evidence.UNCLEAR, "x")), Status.FALSE, "IncompleteEvidence"),
        (_saw(Presence(Evidence.UNSUPPORTED, "x")), Status.UNKNOWN, "Unsupported"),
        (lambda board: _set(board, Unknown("no answer")), Status.FALSE, "Unreadable"),
        (lambda board: board.suspending(), Status.FALSE, "Stale"),
    ],
)
def test_presence_signal(act: Callable[[Board], None], status: Status, reason: str) -> None:
    board = vacant()
    act(board)
    found = presence_finding(board, START)
    assert (found.status, found.reason) == (status, reason)


def test_presence_signal_before_the_first_sample_and_after_the_last() -> None:
    assert presence_finding(Board(host()), START).reason == "NotSampled"
    assert presence_finding(vacant(), Instant(START + 16)).reason == "Stale"


def test_presence_signal_of_a_headless_host() -> None:
    board = vacant(host(owner=OwnerSettings(headless=True)))
    board.set_presence(seen(), START)
    assert presence_finding(board, START).reason == "Headless"


@pytest.mark.parametrize(
    ("claims", "status", "reason"),
    [
        ({"a": True}, Status.TRUE, "Reclaimed"),
        ({"b": False, "a": True, "c": None}, Status.FALSE, "UnloadNotConfirmed"),
        ({"a": True, "c": None}, Status.UNKNOWN, "Unloading"),
    ],
)
def test_reclaimed(claims: dict[str, bool | None], status: Status, reason: str) -> None:
    found = reclaimed_finding(claims)
    assert found is not None
    assert (found.status, found.reason) == (status, reason)


def test_nothing_is_claimed_where_nobody_was_asked() -> None:
    assert reclaimed_finding({}) is None


def test_config_applied_names_every_error() -> None:
    assert config_finding([]).status is Status.TRUE
    found = config_finding(["spec.upstreams[0].port: taken", "spec.owner.idleAfter: not a duration"])
    assert (found.status, found.reason) == (Status.FALSE, "Invalid")
    assert found.message == "spec.upstreams[0].port: taken; spec.owner.idleAfter: not a duration"


def test_config_applied_stays_short() -> None:
    found = config_finding([f"spec.resources[{i}]: {'x' * 300}" for i in range(100)])
    assert len(found.message) <= 4096
    assert config_finding(["e"] * 25).message.endswith("and 5 more")
