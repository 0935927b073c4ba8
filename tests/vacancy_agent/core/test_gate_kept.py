from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from standins.hosts import NOON, START, host, memory, seen, upstream, vacant
from standins.worlds import AGES, FREES, MODELS, World, board_of, worlds
from vacancy_agent.core.board import Board, Pressure
from vacancy_agent.core.facts import Evidence, Instant, MiB, Ready, Unknown, WallTime
from vacancy_agent.core.gate import Ask, decide
from vacancy_agent.core.gate_kept import KEPT_MODELS, Gate
from vacancy_agent.core.lending import LocalPause
from vacancy_agent.core.settings import Footprint, LendingSettings
from vacancy_agent.core.shown import SlotsShown
from vacancy_agent.core.verdict import Refuse

if TYPE_CHECKING:
    from collections.abc import Callable

Act = tuple[str, Any]
acts = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.sampled_from([0.1, 0.5, 1.0, 3.0, *AGES])),
        st.tuples(st.just("free"), st.none() | st.sampled_from(FREES)),
        st.tuples(st.just("owner"), st.sampled_from(Evidence)),
        st.tuples(st.just("switch"), st.booleans()),
        st.tuples(st.just("pressure"), st.sampled_from(Pressure)),
        st.tuples(st.just("pause"), st.none() | st.sampled_from([2.5, 60.0])),
        st.tuples(st.just("slots"), st.booleans()),
        st.tuples(st.just("ended"), st.none()),
        st.tuples(st.just("sleep"), st.none()),
        st.tuples(st.just("tick"), st.none()),
    ),
    max_size=25,
)


def _pause(board: Board, now: Instant, seconds: float | None) -> None:
    wall = NOON + now - START - 1000
    board.set_local_pause(None if seconds is None else LocalPause(WallTime(wall + seconds)))


def _read(board: Board, now: Instant, free: int | None) -> None:
    board.set_capacity("gpu", Unknown("no answer") if free is None else Ready(memory(free), now))


def _switch(board: Board, _: Instant, on: bool) -> None:
    board.set_resource_enabled("gpu", on)


def _press(board: Board, _: Instant, state: Pressure) -> None:
    board.set_pressure("gpu", state)


DOES: dict[str, Callable[[Board, Instant, Any], object]] = {
    "free": _read,
    "owner": lambda board, now, evidence: board.set_presence(seen(evidence, now), now),
    "switch": _switch,
    "pressure": _press,
    "pause": _pause,
    "slots": lambda board, now, idle: board.set_residency("llm", Ready(SlotsShown(idle), now)),
    "ended": lambda board, now, _: board.work_ended("gpu", now),
    "sleep": lambda board, now, _: board.resumed(now),
    "tick": lambda board, now, _: board.tick(now),
}


@settings(max_examples=settings().max_examples * 2)
@given(worlds(), acts)
def test_answers_at_every_moment_as_the_gate_without_memory(world: World, script: list[Act]) -> None:
    board = board_of(world)
    kept = Gate(board)
    now = Instant(world.now)
    for verb, value in [("tick", None), *script]:
        if verb == "wait":
            now = Instant(now + value)
        else:
            DOES[verb](board, now, value)
        for model in MODELS:
            question = Ask("llm", model, world.prior)
            wall = WallTime(NOON + now - world.now)
            for _ in range(2):
                remembered = kept.kept("llm", model, now)
                assert remembered in (None, decide(board, Ask("llm", model), now, wall))
                assert kept.decide(question, now, wall) == decide(board, question, now, wall)


def test_a_pause_that_begins_by_the_clock_alone_is_noticed_within_a_second() -> None:
    """A stepped wall clock writes nothing to the board."""
    board = vacant(host(lending=LendingSettings(paused_until=WallTime(NOON))))
    kept = Gate(board)
    assert not isinstance(kept.decide(Ask("llm"), START, NOON), Refuse)
    stepped_back = WallTime(NOON - 3600)
    assert isinstance(kept.decide(Ask("llm"), Instant(START + 1), stepped_back), Refuse)


def test_another_prior_is_another_question() -> None:
    board = vacant(host([upstream(default_footprint=Footprint(MiB(100)))]), free=5_000)
    kept = Gate(board)
    assert not isinstance(kept.decide(Ask("llm", "m"), START, NOON), Refuse)
    learned = {"gpu": MiB(6_000)}
    assert isinstance(kept.decide(Ask("llm", "m", learned), START, NOON), Refuse)


def test_names_of_models_do_not_pile_up() -> None:
    kept = Gate(vacant())
    for number in range(KEPT_MODELS * 3):
        kept.decide(Ask("llm", f"model-{number}"), START, NOON)
    assert len(kept._kept["llm"].admits) == KEPT_MODELS


def test_an_admission_is_remembered_until_something_changes() -> None:
    board = vacant()
    gate = Gate(board)
    assert gate.kept("llm", "m", START) is None
    admitted = gate.decide(Ask("llm", "m"), START, NOON)
    assert gate.kept("llm", "m", START) is admitted
    assert gate.kept("llm", "other", START) is None
    assert gate.kept("unknown", "m", START) is None
    assert gate.kept("llm", "m", Instant(START + 2)) is None
    board.set_resource_enabled("gpu", False)
    assert gate.kept("llm", "m", START) is None


def test_memory_that_is_read_again_costs_no_new_verdict_until_it_is_short() -> None:
    board = vacant(host([upstream(footprints={"m": Footprint(MiB(10_000))})]))
    gate = Gate(board)
    admitted = gate.decide(Ask("llm", "m"), START, NOON)
    board.set_capacity("gpu", Ready(memory(10_000), Instant(START + 0.1)))
    assert gate.kept("llm", "m", Instant(START + 0.2)) is admitted
    board.set_capacity("gpu", Ready(memory(9_999), Instant(START + 0.3)))
    assert gate.kept("llm", "m", Instant(START + 0.4)) is None
    board.set_capacity("gpu", Ready(memory(10_000), Instant(START + 0.5)))
    assert gate.kept("llm", "m", Instant(START + 0.6)) is not None
    assert gate.kept("llm", "m", Instant(START + 1.5)) is None
