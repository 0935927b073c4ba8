"""From a reading to the cut: the board first, then the reclaim, in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from standins.clock import FakeClock
from standins.hosts import host, memory, seen, vacant
from vacancy_agent.core.board import Pressure
from vacancy_agent.core.facts import Evidence, Ready, Stale, Unknown
from vacancy_agent.core.gate import Ask, decide
from vacancy_agent.core.owner_load import Failed
from vacancy_agent.core.pressure import PressureEdge
from vacancy_agent.core.verdict import Refuse
from vacancy_agent.wiring.readings import Readings

if TYPE_CHECKING:
    from vacancy_agent.core.board import Board


class Spy:
    """The reclaim, the pressure, the log and the conditions, in the order in which they are told."""

    def __init__(self, board: Board, clock: FakeClock) -> None:
        self.board = board
        self.clock = clock
        self.calls: list[str] = []
        self.told: list[tuple[str, dict[str, object]]] = []
        self.refused_at_edge: Any = None
        self.pressed: PressureEdge | None = None
        self.overdue: list[tuple[str, PressureEdge]] = []

    def owner_returned(self, now: float) -> None:
        self.calls.append("owner_returned")
        self.refused_at_edge = decide(self.board, Ask("llm", None), self.clock.now(), self.clock.wall())

    def recheck(self, board: Board, now: float) -> None:
        assert board is self.board
        self.calls.append("recheck")

    def tick(self, now: float | None = None) -> Any:
        """Of the reclaim without an argument, of the pressure with one."""
        if now is None:
            self.calls.append("reclaim_tick")
            return None
        return iter(self.overdue)

    def observe(self, resource: str, sample: object, now: float) -> PressureEdge | None:
        if self.pressed is not None:
            self.board.set_pressure(resource, Pressure.ENGAGED)
        return self.pressed

    def outdate(self) -> None:
        self.calls.append("outdate")

    def resource_pressed(self, resource: str, board: Board, now: float) -> None:
        self.calls.append(f"pressed {resource}")
        self.refused_at_edge = decide(board, Ask("llm", None), self.clock.now(), self.clock.wall())

    def changed(self) -> None:
        self.calls.append("changed")

    def tell(self, event: str, **facts: object) -> None:
        self.told.append((event, facts))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def spy(clock: FakeClock) -> Spy:
    return Spy(vacant(host(), clock.now()), clock)


@pytest.fixture
def readings(spy: Spy, clock: FakeClock) -> Readings:
    return Readings(spy.board, spy, clock, spy.tell, spy.changed, spy)  # type: ignore[arg-type]


def test_an_owner_who_returns_is_on_the_board_before_anything_is_cut(
    readings: Readings, spy: Spy, clock: FakeClock
):
    readings.set_presence(seen(Evidence.PRESENT, clock.now()))
    assert spy.calls == ["owner_returned", "recheck", "changed"]
    assert isinstance(spy.refused_at_edge, Refuse)
    assert spy.refused_at_edge.reason == "owner_active"
    assert spy.told == [("owner veto", {"state": "engaged", "why": "a test saw present"})]


def test_an_edge_is_told_once_and_its_release_too(readings: Readings, spy: Spy, clock: FakeClock):
    for _ in range(3):
        readings.set_presence(seen(Evidence.PRESENT, clock.now()))
        clock.advance(1)
    clock.advance(spy.board.settings.owner.release_after)
    readings.set_presence(seen(Evidence.ABSENT, clock.now()))
    assert spy.calls.count("owner_returned") == 1
    assert [facts["state"] for _, facts in spy.told] == ["engaged", "released"]


def test_nobody_there_only_looks_whether_a_wait_is_over(readings: Readings, spy: Spy, clock: FakeClock):
    readings.set_presence(seen(Evidence.ABSENT, clock.now()))
    assert spy.calls == ["recheck", "changed"]
    assert spy.told == []


def test_presence_that_was_lost_for_too_long_is_an_edge_of_the_tick(
    readings: Readings, spy: Spy, clock: FakeClock
):
    readings.set_presence(Unknown("the bus does not answer"))
    clock.advance(spy.board.settings.sampling.stale_after)
    readings.tick()
    assert "owner_returned" not in spy.calls
    clock.advance(0.1)
    readings.tick()
    readings.tick()
    assert spy.calls.count("owner_returned") == 1
    assert spy.calls.count("recheck") == spy.calls.count("changed") == 4


def test_a_capacity_reading_goes_onto_the_board(readings: Readings, spy: Spy, clock: FakeClock):
    clock.advance(1)
    reading = Ready(memory(free=5), clock.now())
    readings.set_capacity("gpu", reading)
    assert spy.board.capacity["gpu"] == reading
    assert spy.calls == ["changed"]


def test_a_sleep_outdates_everything_and_is_told(readings: Readings, spy: Spy, clock: FakeClock):
    readings.on_wake.append(lambda: spy.calls.append("woke"))
    readings.suspending(clock.now())
    assert isinstance(spy.board.presence, Stale)
    clock.sleep(8 * 3600)
    readings.resumed(clock.now())
    assert isinstance(spy.board.capacity["gpu"], Stale)
    assert [event for event, _ in spy.told] == ["suspending", "resumed"]
    assert spy.calls == ["recheck", "changed", "outdate", "reclaim_tick", "changed", "woke"]
    readings.set_presence(seen(Evidence.ABSENT, clock.now()))
    assert isinstance(spy.board.presence, Ready)


def test_an_owners_load_is_on_the_board_before_anything_is_cut(
    readings: Readings, spy: Spy, clock: FakeClock
):
    spy.pressed = PressureEdge(clock.now(), "the owner's load reached the threshold")
    readings.set_pressure("gpu", Failed("whatever"))
    assert spy.calls == ["pressed gpu", "recheck", "changed"]
    assert spy.refused_at_edge.reason == "resource_pressured"
    readings.set_pressure("gpu", Failed("whatever"))
    assert spy.calls[3:] == ["pressed gpu", "recheck"], "what is as it was changes no condition"


def test_a_load_without_an_edge_only_looks_whether_a_wait_is_over(readings: Readings, spy: Spy):
    readings.set_pressure("gpu", Failed("whatever"))
    assert spy.calls == ["recheck"]


def test_a_load_that_nobody_answers_for_is_an_edge_of_the_tick(
    readings: Readings, spy: Spy, clock: FakeClock
):
    spy.overdue = [("gpu", PressureEdge(clock.now(), "the owner's load has been unknown for 20 s"))]
    readings.tick()
    assert spy.calls[:2] == ["pressed gpu", "recheck"]
    assert spy.told[-1][1]["why"] == "the owner's load has been unknown for 20 s"
