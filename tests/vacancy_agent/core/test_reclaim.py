from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.hosts import NOON, START, host, resource, seen, upstream, vacant
from vacancy_agent.core.board import Board, Pressure
from vacancy_agent.core.effects import CancelWork, PublishPhase, ReclaimPhase, ReopenAdmission, Unload, WakeAt
from vacancy_agent.core.facts import Evidence, Instant, Seconds, Unknown
from vacancy_agent.core.job import JobId
from vacancy_agent.core.ledger import Ledger
from vacancy_agent.core.lending import LocalPause
from vacancy_agent.core.reclaim import Reclaims, trigger_gone
from vacancy_agent.core.settings import Dialect, OnOwnerReturn, OwnerScope, ResourceType
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from vacancy_agent.core.effects import Effect, Effects

CANCEL, DRAIN = OnOwnerReturn.CANCEL, OnOwnerReturn.DRAIN
BUSY = {name: (JobId(i),) for i, name in enumerate(["a", "b", "c"], 1)}


def at(seconds: float) -> Instant:
    return Instant(START + seconds)


def hosted() -> Reclaims:
    return Reclaims(
        host(
            [
                upstream("a", ("gpu0",), on_owner_return=CANCEL),
                upstream("b", ("gpu1", "ram"), on_owner_return=CANCEL),
                upstream("c", ("ram",), on_owner_return=CANCEL, owner_scope=OwnerScope.RESOURCE),
            ]
        )
    )


def cut(effects: Effects) -> set[str]:
    return {effect.upstream for effect in effects if isinstance(effect, CancelWork)}


def test_the_owner_takes_back_host_scoped_upstreams_only() -> None:
    assert cut(hosted().owner_edge(BUSY.__getitem__, at(0))) == {"a", "b"}


@pytest.mark.parametrize(
    ("resource", "veto", "reached"),
    [
        ("gpu0", False, {"a"}),
        ("gpu1", False, {"b"}),
        ("ram", False, {"b", "c"}),
        ("ram", True, {"c"}),
        ("gpu0", True, set()),
    ],
)
def test_pressure_takes_back_what_needs_the_resource(resource: str, veto: bool, reached: set[str]) -> None:
    effects = hosted().pressure_edge(resource, BUSY.__getitem__, at(0), veto=veto)
    assert cut(effects) == reached
    assert {e.reason for e in effects if isinstance(e, CancelWork)} <= {Reason.RESOURCE_PRESSURED}


def test_a_neighbour_is_not_touched_and_keeps_its_own_deadline() -> None:
    reclaims = Reclaims(host([upstream("a", ("gpu0",)), upstream("b", ("gpu1",), drain_timeout=Seconds(5))]))
    reclaims.pressure_edge("gpu0", BUSY.__getitem__, at(0), veto=False)
    effects = reclaims.pressure_edge("gpu1", BUSY.__getitem__, at(20), veto=False)
    assert [e for e in effects if isinstance(e, WakeAt)] == [WakeAt("b", at(25))]
    assert cut(reclaims.tick(at(25))) == {"b"}
    assert cut(reclaims.tick(at(30))) == {"a"}


def waiting() -> tuple[Board, Ledger, Reclaims]:
    """One job runs, and the owner has come back."""
    settings = host([upstream(requires=("gpu", "ram"))])
    board = vacant(settings)
    ledger, reclaims = Ledger(settings, board), Reclaims(settings)
    ledger.reserve("llm", at(0), borrower="ci")
    assert board.set_presence(seen(Evidence.PRESENT, at(1)), at(1)) is not None
    reclaims.owner_edge(ledger.active, at(1))
    return board, ledger, reclaims


def phases(effects: tuple[Effect, ...]) -> list[ReclaimPhase]:
    return [effect.phase for effect in effects if isinstance(effect, PublishPhase)]


def test_a_wait_stands_down_when_the_gate_would_admit_again() -> None:
    board, ledger, reclaims = waiting()
    board.veto.release_after = Seconds(10)
    assert reclaims.recheck(board, at(2), NOON) == ()
    board.set_presence(seen(Evidence.ABSENT, at(11)), at(11))
    assert phases(reclaims.recheck(board, at(11), NOON)) == [ReclaimPhase.STOOD_DOWN]
    assert reclaims.tick(at(31)) == (), "nothing is cancelled"
    board.set_presence(seen(Evidence.PRESENT, at(40)), at(40))
    reclaims.owner_edge(ledger.active, at(40))
    assert cut(reclaims.tick(at(69))) == set(), "a later edge starts anew"
    assert cut(reclaims.tick(at(70))) == {"llm"}


def test_a_pause_after_an_owners_edge_does_not_keep_the_wait_from_standing_down() -> None:
    board, _, reclaims = waiting()
    board.veto.release_after = Seconds(10)
    board.set_local_pause(LocalPause(None))
    board.set_presence(seen(Evidence.ABSENT, at(11)), at(11))
    assert phases(reclaims.recheck(board, at(11), NOON)) == [ReclaimPhase.STOOD_DOWN]


@pytest.mark.parametrize(
    ("state", "refused", "gone"),
    [
        (Pressure.CLEAR, True, True),
        (Pressure.BUILDING, True, False),
        (Pressure.ENGAGED, True, False),
        (Pressure.UNKNOWN, True, False),
        (Pressure.CALIBRATING, True, False),
        (Pressure.OFF, True, False),
        (Pressure.OFF, False, True),
        (Pressure.BUILDING, False, True),
        (Pressure.ENGAGED, False, False),
        (Pressure.UNKNOWN, False, False),
    ],
)
def test_a_pressed_resource_must_be_clear_and_the_others_must_admit(
    state: Pressure, refused: bool, gone: bool
) -> None:
    board = vacant()
    board.set_pressure("gpu", state)
    up = board.settings.upstreams["llm"]
    assert trigger_gone(board, up, ["gpu"] if refused else [], at(0)) is gone


def test_a_reclaim_does_not_stand_down_on_a_stale_or_unread_owner() -> None:
    board = vacant()
    up = board.settings.upstreams["llm"]
    assert trigger_gone(board, up, [], at(15))
    assert not trigger_gone(board, up, [], at(16))
    board.set_presence(Unknown("no answer"), at(1))
    assert not trigger_gone(board, up, [], at(1))


def test_a_pause_at_the_machine_takes_everything_back() -> None:
    effects = hosted().lending_edge(BUSY.__getitem__, at(0))
    assert cut(effects) == {"a", "b", "c"}
    assert {e.reason for e in effects if isinstance(e, CancelWork)} == {Reason.LENDING_DISABLED}


@pytest.mark.parametrize("owner_first", [True, False])
def test_a_wait_that_answers_a_pause_stands_down_only_when_the_owner_resumes(owner_first: bool) -> None:
    board = vacant()
    ledger, reclaims = Ledger(board.settings, board), Reclaims(board.settings)
    ledger.reserve("llm", at(0), borrower="ci")
    if owner_first:
        reclaims.owner_edge(ledger.active, at(0))
    board.set_local_pause(LocalPause(None))
    reclaims.lending_edge(ledger.active, at(1))
    assert reclaims.recheck(board, at(2), NOON) == ()
    board.set_local_pause(None)
    assert phases(reclaims.recheck(board, at(3), NOON)) == [ReclaimPhase.STOOD_DOWN]


def test_the_end_of_a_job_reaches_its_machine() -> None:
    _, ledger, reclaims = waiting()
    (job,) = ledger.active("llm")
    assert phases(reclaims.job_ended("llm", job, at(3))) == [ReclaimPhase.PROCEEDING]
    assert reclaims.job_ended("gone", job, at(3)) == ()


def test_the_result_of_an_unload_reaches_its_machine() -> None:
    reclaims = Reclaims(host([upstream(dialect=Dialect.OLLAMA, yield_on_veto=True)]))
    (unload,) = [e for e in reclaims.owner_edge(lambda _: (), at(0)) if isinstance(e, Unload)]
    assert reclaims.unload_result("llm", unload.attempt, at(1), shown=True)
    assert reclaims.unload_result("gone", 1, at(1), shown=True) == ()


def test_what_is_claimed_of_an_unload() -> None:
    reclaims = Reclaims(host([upstream(dialect=Dialect.OLLAMA, yield_on_veto=True), upstream("other")]))
    assert reclaims.claims() == {}
    for shown, during in ((True, None), (False, None), (True, False)):
        (unload,) = [e for e in reclaims.owner_edge(lambda _: (), at(0)) if isinstance(e, Unload)]
        assert reclaims.claims() == {"llm": during}, "a claim is not kept while it is asked anew, a no is"
        reclaims.unload_result("llm", unload.attempt, at(1), shown=shown)
        assert reclaims.claims() == {"llm": shown}


def test_new_settings_leave_a_deadline_alone() -> None:
    _, _, reclaims = waiting()
    reclaims.reconfigure(host([upstream(drain_timeout=Seconds(500)), upstream("new")]))
    assert cut(reclaims.tick(at(31))) == {"llm"}
    assert set(reclaims.machines) == {"llm", "new"}
    assert reclaims.reconfigure(host([upstream("new")])) == (ReopenAdmission("llm"),), "should it come back"
    assert set(reclaims.machines) == {"new"}


def test_a_pressed_resource_that_is_configured_away_keeps_nobody_waiting() -> None:
    board, ledger, reclaims = waiting()
    reclaims.pressure_edge("gpu", ledger.active, at(2), veto=False)
    board.set_pressure("gpu", Pressure.ENGAGED)
    settings = host([upstream(requires=("ram",))], [resource("ram", ResourceType.MEMORY)])
    board.reconfigure(settings)
    reclaims.reconfigure(settings)
    board.veto.release_after = Seconds(10)
    board.set_presence(seen(Evidence.ABSENT, at(12)), at(12))
    assert phases(reclaims.recheck(board, at(12), NOON)) == [ReclaimPhase.STOOD_DOWN]
