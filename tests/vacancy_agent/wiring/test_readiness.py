"""Ready: every proxy listens, and every sample that an upstream needs is fresh."""

from __future__ import annotations

from dataclasses import replace

from standins.clock import FakeClock
from standins.hosts import host, observe, resource, upstream
from vacancy_agent.core.board import Board, Pressure
from vacancy_agent.core.settings import OwnerSettings, ResourceType
from vacancy_agent.wiring.readiness import missing

SETTINGS = host((upstream("llm", ("gpu",)),), (resource("gpu"), resource("cpu", ResourceType.CPU)))


def lines(board: Board, clock: FakeClock, *, bound: bool = True) -> list[str]:
    return list(missing(board, clock.now(), lambda _: bound))


def test_what_is_missing_at_first_and_after_a_while():
    clock, board = FakeClock(), Board(SETTINGS)
    stale = ["presence has no fresh sample", "resource gpu has no fresh sample"]
    assert lines(board, clock) == stale  # what no upstream needs is not waited for
    observe(board, clock.now())
    assert lines(board, clock) == []
    clock.advance(SETTINGS.sampling.stale_after + 0.1)
    assert lines(board, clock) == stale


def test_a_proxy_that_does_not_listen():
    clock, board = FakeClock(), Board(SETTINGS)
    observe(board, clock.now())
    assert lines(board, clock, bound=False) == ["the proxy of llm does not listen"]


def test_a_resource_that_is_switched_off_is_not_waited_for():
    clock, board = FakeClock(), Board(SETTINGS)
    observe(board, clock.now())
    clock.advance(SETTINGS.sampling.stale_after + 0.1)
    board.set_resource_enabled("gpu", False)
    assert lines(board, clock) == ["presence has no fresh sample"]


def test_another_way_to_look_for_the_owner_has_to_be_tried_first():
    clock, board = FakeClock(), Board(SETTINGS)
    observe(board, clock.now())
    board.reconfigure(replace(SETTINGS, owner=OwnerSettings(headless=True)))
    assert lines(board, clock) == ["presence has no fresh sample"]
    observe(board, clock.now())
    assert lines(board, clock) == []


def test_a_load_that_has_to_be_known_and_is_not():
    clock, board = FakeClock(), Board(SETTINGS)
    observe(board, clock.now())
    board.set_pressure("gpu", Pressure.UNKNOWN)
    assert lines(board, clock) == ["the owner's load on resource gpu is not known"]
    board.set_pressure("gpu", Pressure.CALIBRATING)
    assert lines(board, clock) == [], "it is observed, if not long enough yet"
    board.set_pressure("gpu", Pressure.UNKNOWN)
    board.set_resource_enabled("gpu", False)
    assert lines(board, clock) == []
