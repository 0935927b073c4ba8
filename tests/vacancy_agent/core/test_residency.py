from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from standins.hosts import NOON, START, host, upstream, vacant
from vacancy_agent.core.facts import Instant, MiB, Ready, Stale, Unknown
from vacancy_agent.core.gate import Ask, decide
from vacancy_agent.core.residency import residency
from vacancy_agent.core.settings import Footprint
from vacancy_agent.core.shown import SlotsShown
from vacancy_agent.core.verdict import Admit, Refuse

if TYPE_CHECKING:
    from vacancy_agent.core.board import Board


def at(seconds: float) -> Instant:
    return Instant(START + seconds)


IDLE = SlotsShown(idle=True)


def proof(board: Board, seconds: float = 0) -> tuple[bool, bool]:
    found = residency(board, board.settings.upstreams["llm"], Ask("llm", "m"), at(seconds))
    return found.credited, found.only_too_old


@pytest.mark.parametrize(
    ("reading", "seconds", "credited", "only_too_old"),
    [
        pytest.param(None, 0, False, True, id="not observed yet"),
        pytest.param(Ready(IDLE, at(0)), 4, True, False, id="idle and four seconds old"),
        pytest.param(Ready(IDLE, at(0)), 4.1, False, True, id="older"),
        pytest.param(Ready(SlotsShown(idle=False), at(0)), 1, False, False, id="busy"),
        pytest.param(Stale(IDLE, at(0), "slept"), 0, False, True, id="stale"),
        pytest.param(Unknown("no answer"), 0, False, True, id="unknown"),
    ],
)
def test_only_fresh_idle_slots_prove(
    reading: object, seconds: float, credited: bool, only_too_old: bool
) -> None:
    board = vacant()
    if reading is not None:
        board.set_residency("llm", reading)  # type: ignore[arg-type]
    assert proof(board, seconds) == (credited, only_too_old)


@pytest.mark.parametrize("resource", ["gpu", "ram"])
@pytest.mark.parametrize("unload", [True, False])
def test_a_job_or_an_unload_on_any_resource_voids_it(resource: str, unload: bool) -> None:
    board = vacant(host([upstream(requires=("gpu", "ram"))]))
    board.set_residency("llm", Ready(IDLE, at(1)))
    if unload:
        board.let_go([resource], at(1))
    else:
        board.work_ended(resource, at(1))
    assert proof(board, 2) == (False, True)
    board.set_residency("llm", Ready(IDLE, at(2)))
    assert proof(board, 2) == (True, False)


def charged(resident: int, full: int, free: int, *, idle: bool = True) -> Admit | Refuse:
    board = vacant(host([upstream(default_footprint=Footprint(MiB(full), MiB(resident)))]), free=free)
    board.set_residency("llm", Ready(SlotsShown(idle), at(0)))
    return decide(board, Ask("llm", "m", {"gpu": MiB(50_000)}), at(1), NOON)


def test_a_credited_request_is_charged_its_resident_need_without_the_prior() -> None:
    assert charged(500, 10_000, 500) == Admit(MiB(500), True, "resident: shown by idle slots")


def test_the_resident_need_is_never_more_than_the_full_one() -> None:
    assert charged(10_000, 500, 600) == Admit(MiB(500), True, "resident: shown by idle slots")


def test_a_refusal_says_whether_a_credit_applied() -> None:
    short = charged(500, 10_000, 499)
    assert isinstance(short, Refuse)
    assert short.detail["credit"] == "resident: shown by idle slots"
    busy = charged(500, 10_000, 499, idle=False)
    assert isinstance(busy, Refuse)
    assert busy.detail["credit"] == "none: the server is not idle"
    assert not busy.needs_residency


def test_a_refusal_for_an_old_observation_asks_for_a_new_one() -> None:
    board = vacant(host([upstream(default_footprint=Footprint(MiB(10_000)))]), free=100)
    board.set_residency("llm", Ready(IDLE, at(0)))
    refused = decide(board, Ask("llm"), at(5), NOON)
    assert isinstance(refused, Refuse)
    assert refused.needs_residency
    board.set_residency("llm", Ready(IDLE, at(5)))
    assert isinstance(decide(board, Ask("llm"), at(5), NOON), Admit)


def test_the_resources_own_minimum_applies_with_a_credit_too() -> None:
    settings = host([upstream()])
    board = vacant(settings, free=400)
    strict = replace(settings, resources={"gpu": replace(settings.resources["gpu"], min_free=MiB(401))})
    board.reconfigure(strict)
    board.set_residency("llm", Ready(IDLE, at(0)))
    refused = decide(board, Ask("llm"), at(1), NOON)
    assert isinstance(refused, Refuse)
    assert refused.step == 5
