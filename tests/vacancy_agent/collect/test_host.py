from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import psutil
import pytest

from standins.clock import FakeClock
from vacancy_agent.clock import SystemClock
from vacancy_agent.collect import host
from vacancy_agent.collect.host import HostProbe
from vacancy_agent.core.facts import CpuCapacity, MemoryCapacity, Ready, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable


class Times(NamedTuple):
    user: float = 0.0
    idle: float = 0.0
    iowait: float = 0.0
    guest: float = 0.0


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def set_to(**times: float) -> None:
        monkeypatch.setattr(psutil, "cpu_times", lambda: Times(**times))

    set_to()
    return set_to


def load(probe: HostProbe) -> float | str:
    reading = probe.cpu()
    if isinstance(reading, Ready):
        assert isinstance(reading.value, CpuCapacity)
        return reading.value.utilization
    assert isinstance(reading, Unknown)
    return reading.why


def test_memory_of_this_machine() -> None:
    clock = SystemClock()
    before = clock.now()
    reading = HostProbe(clock).memory()
    assert isinstance(reading, Ready)
    assert isinstance(reading.value, MemoryCapacity)
    assert reading.at >= before
    assert 0 < reading.value.free <= reading.value.total
    assert reading.value.total == psutil.virtual_memory().total // 2**20


def test_memory_that_cannot_be_read_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("no /proc")

    monkeypatch.setattr(host, "memory_reader", lambda: fail)
    reading = HostProbe(FakeClock()).memory()
    assert isinstance(reading, Unknown)
    assert "no /proc" in reading.why


def test_the_first_load_is_unknown_and_not_zero(counters: Callable[..., None]) -> None:
    clock = FakeClock()
    probe = HostProbe(clock)
    assert "first time" in str(load(probe))
    clock.advance(0.4)
    counters(user=0.4)
    assert "first time" in str(load(probe))
    clock.advance(0.2)
    counters(user=0.6)
    assert load(probe) == 100.0


def test_load_is_the_share_of_busy_time(counters: Callable[..., None]) -> None:
    clock = FakeClock()
    probe = HostProbe(clock)
    clock.advance(3)
    counters(user=1.0, idle=2.0, iowait=1.0)
    assert load(probe) == pytest.approx(25)


def test_a_guests_time_is_counted_once(counters: Callable[..., None]) -> None:
    clock = FakeClock()
    probe = HostProbe(clock)
    clock.advance(3)
    counters(user=2.0, guest=2.0, idle=2.0)
    assert load(probe) == pytest.approx(50)


def test_two_calls_in_a_row_cover_the_same_long_window(counters: Callable[..., None]) -> None:
    clock = FakeClock()
    probe = HostProbe(clock)
    clock.advance(3)
    counters(user=1.5, idle=1.5)
    assert load(probe) == pytest.approx(50)
    clock.advance(0.001)
    counters(user=1.501, idle=1.5)
    assert load(probe) == pytest.approx(50, abs=0.1)
    clock.advance(3)
    counters(user=1.501, idle=4.5)
    assert load(probe) == pytest.approx(0, abs=0.1)


def test_counters_that_stand_still_or_run_backwards_are_unknown_or_clamped(
    counters: Callable[..., None],
) -> None:
    clock = FakeClock()
    probe = HostProbe(clock)
    clock.advance(3)
    assert "did not move" in str(load(probe))
    clock.advance(3)
    counters(user=-1.0, idle=4.0)
    assert load(probe) == 0.0


def test_processors_that_cannot_be_read_are_unknown_and_read_again_later(
    counters: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError("Too many open files")

    clock = FakeClock()
    monkeypatch.setattr(psutil, "cpu_times", fail)
    probe = HostProbe(clock)
    assert "Too many open files" in str(load(probe))
    counters(user=10.0, idle=10.0)
    clock.advance(1.0)
    assert isinstance(load(probe), str)
    counters(user=10.5, idle=10.5)
    clock.advance(1.0)
    assert load(probe) == 50.0
    monkeypatch.setattr(psutil, "cpu_times", fail)
    assert "Too many open files" in str(load(probe))
