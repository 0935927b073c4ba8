from __future__ import annotations

from dataclasses import replace

import pytest

from standins.hosts import NOON, START, host, memory, resource, seen, upstream, vacant
from vacancy_agent.core.board import Board, Pressure
from vacancy_agent.core.facts import Evidence, Instant, Percent, Ready, Seconds, Stale, Unknown, WallTime
from vacancy_agent.core.lending import By, LocalPause
from vacancy_agent.core.settings import LendingSettings, OwnerSettings, PressureMode, PressureSettings
from vacancy_agent.core.shown import SlotsShown
from vacancy_agent.core.veto import Direction


def at(seconds: float) -> Instant:
    return Instant(START + seconds)


def test_nothing_is_known_at_first() -> None:
    board = Board(host())
    assert isinstance(board.capacity["gpu"], Unknown)
    assert isinstance(board.presence, Unknown)
    assert not board.presence_sampled
    assert board.tick(at(1e6)) is None, "what was never seen cannot grow old"


def test_an_older_reading_does_not_replace_a_newer_one() -> None:
    board = vacant()
    board.set_capacity("gpu", Ready(memory(1), at(-1)))
    assert board.capacity["gpu"] == Ready(memory(20_000), at(0))
    board.set_capacity("gpu", Unknown("the last attempt failed"))
    assert isinstance(board.capacity["gpu"], Unknown)


def test_a_presence_sample_that_took_too_long_is_discarded() -> None:
    board = vacant()
    edge = board.set_presence(seen(Evidence.ABSENT, at(1)), at(16.5))
    assert board.presence == seen(Evidence.ABSENT, at(0))
    assert edge is not None, "and the last good one has grown too old meanwhile"


def test_a_late_older_sample_does_not_hide_the_owner() -> None:
    board = vacant()
    board.set_presence(seen(Evidence.PRESENT, at(2)), at(2))
    board.set_presence(seen(Evidence.ABSENT, at(1)), at(3))
    assert board.presence == seen(Evidence.PRESENT, at(2))


def test_edges_are_values() -> None:
    board = vacant(host(owner=OwnerSettings(release_after=Seconds(10))))
    edges = [
        board.set_presence(seen(evidence, at(s)), at(s))
        for s, evidence in [
            (1, Evidence.PRESENT),
            (2, Evidence.PRESENT),
            (5, Evidence.ABSENT),
            (12, Evidence.ABSENT),
        ]
    ]
    assert [edge and edge.direction for edge in edges] == [Direction.RISING, None, None, Direction.FALLING]


@pytest.mark.parametrize("failing", [True, False], ids=["attempts that fail", "no attempt at all"])
def test_presence_that_cannot_be_read_for_too_long_engages_the_veto(failing: bool) -> None:
    board = vacant()
    edges = [
        board.set_presence(Unknown("no answer"), at(s)) if failing else board.tick(at(s))
        for s in range(3, 31, 3)
    ]
    assert [edge.at for edge in edges if edge] == [at(18)]
    falling = board.set_presence(seen(Evidence.ABSENT, at(33)), at(33))
    assert falling is not None
    assert falling.direction is Direction.FALLING


def test_sleep_outdates_everything_until_it_is_taken_again() -> None:
    board = vacant()
    board.set_residency("llm", Ready(SlotsShown(idle=True), at(0)))
    board.suspending()
    board.set_capacity("gpu", Ready(memory(), at(1)))
    assert isinstance(board.capacity["gpu"], Stale)
    assert isinstance(board.presence, Stale)
    assert isinstance(board.residency["llm"], Stale)
    board.resumed(at(5))
    board.set_capacity("gpu", Ready(memory(), at(4.9)))
    assert isinstance(board.capacity["gpu"], Stale), "begun before the machine slept"
    board.set_presence(seen(Evidence.ABSENT, at(4.9)), at(5.1))
    assert isinstance(board.presence, Stale)
    board.set_capacity("gpu", Ready(memory(), at(6)))
    assert isinstance(board.capacity["gpu"], Ready)


def test_a_long_sleep_engages_the_veto() -> None:
    board = vacant()
    board.resumed(at(8 * 3600))
    edge = board.tick(at(8 * 3600))
    assert edge is not None
    assert edge.direction is Direction.RISING


def test_a_resource_needs_the_specification_and_the_local_switch() -> None:
    board = Board(host([upstream(requires=("gpu", "off"))], [resource(), resource("off", enabled=False)]))
    board.set_resource_enabled("off", True)
    board.set_resource_enabled("gpu", False)
    assert (board.resource_enabled("gpu"), board.resource_enabled("off")) == (False, False)
    board.set_resource_enabled("gpu", True)
    assert board.resource_enabled("gpu")


def test_the_lending_answer_follows_the_clock_and_the_pause() -> None:
    board = Board(host(lending=LendingSettings(paused_until=WallTime(NOON + 10))))
    assert board.lending(NOON).by is By.CLUSTER
    assert board.lending(WallTime(NOON + 10)).allowed
    board.set_local_pause(LocalPause(None))
    assert board.lending(WallTime(NOON + 10)).by is By.LOCAL
    board.set_local_pause(None)
    assert board.lending(WallTime(NOON + 10)).allowed
    assert board.lending(NOON).by is By.CLUSTER, "the wall clock was stepped back"


def test_every_write_that_may_change_a_verdict_makes_a_new_version() -> None:
    board = vacant()
    writes = [
        lambda: board.set_capacity("gpu", Ready(memory(), at(1))),
        lambda: board.set_presence(seen(at=at(1)), at(1)),
        lambda: board.tick(at(60)),
        lambda: board.set_pressure("gpu", Pressure.CLEAR),
        lambda: board.set_residency("llm", Unknown("off")),
        lambda: board.set_local_pause(None),
        lambda: board.set_resource_enabled("gpu", True),
        board.suspending,
        lambda: board.resumed(at(61)),
        lambda: board.reconfigure(board.settings),
    ]
    for write in writes:
        before = board.version
        write()
        assert board.version > before


def test_work_makes_older_readings_unread() -> None:
    board = vacant()
    board.work_began("gpu")
    board.work_ended("gpu", at(5))
    assert board.unread == {"gpu"}
    board.set_capacity("gpu", Ready(memory(), at(5)))
    assert board.unread == {"gpu"}
    board.set_capacity("gpu", Unknown("failed"))
    assert board.unread == {"gpu"}
    board.set_capacity("gpu", Ready(memory(), at(5.1)))
    assert board.unread == set()
    assert board.last_disturbance("gpu") == at(5)
    board.let_go(["gpu"], at(9))
    assert board.last_disturbance("gpu") == at(9)


def test_what_an_upstream_uses_of_its_gpus_is_the_busiest_of_the_last_seconds() -> None:
    board = Board(
        host(
            resources=[resource("gpu0"), resource("gpu1", device="GPU-2")],
            upstreams=[upstream(requires=("gpu0",))],
        )
    )
    assert board.gpu_use("llm", Instant(100.0), Seconds(3.0)) is None
    board.served_load["gpu0", "llm"] = Ready(Percent(0.0), Instant(99.0))
    board.served_load["gpu1", "llm"] = Ready(Percent(70.0), Instant(98.0))
    board.served_load["gpu0", "other"] = Ready(Percent(99.0), Instant(100.0))
    now = [board.gpu_use("llm", Instant(at), Seconds(3.0)) for at in (100.0, 101.5, 103.0)]
    assert now == [70.0, 0.0, None]
    board.set_pressure("gpu0", Pressure.UNKNOWN)
    assert board.gpu_use("llm", Instant(103.0), Seconds(3.0)) == 100.0, "told once, and unreadable now"
    assert board.gpu_use("fresh", Instant(103.0), Seconds(3.0)) is None


class TestNewSettings:
    def test_keep_the_readings_of_the_same_devices(self) -> None:
        board = vacant(host([upstream(requires=("gpu", "card"))]))
        new = host([upstream(requires=("gpu", "card"))], [resource(), resource("card", device="GPU-2")])
        board.reconfigure(new)
        assert isinstance(board.capacity["gpu"], Ready)
        assert isinstance(board.capacity["card"], Unknown)

    def test_ask_for_presence_anew_when_the_owner_is_judged_differently(self) -> None:
        board = vacant(host(owner=OwnerSettings(headless=True)))
        board.reconfigure(host(owner=OwnerSettings(release_after=Seconds(7))))
        assert not board.presence_sampled
        assert board.veto.release_after == 7

    def test_judge_pressure_anew_where_it_is_written_differently(self) -> None:
        board = vacant()
        board.set_pressure("gpu", Pressure.CLEAR)
        board.reconfigure(board.settings)
        assert board.pressure["gpu"] is Pressure.CLEAR
        written = PressureSettings(PressureMode.LEARNED, required=True)
        board.reconfigure(host(resources=[resource(pressure=written)]))
        assert board.pressure["gpu"] is Pressure.UNKNOWN

    def test_forget_the_residency_of_a_changed_upstream(self) -> None:
        board = vacant()
        board.set_residency("llm", Ready(SlotsShown(idle=True), at(0)))
        board.reconfigure(board.settings)
        assert "llm" in board.residency
        board.reconfigure(replace(board.settings, upstreams={"llm": upstream(port=1)}))
        assert "llm" not in board.residency
