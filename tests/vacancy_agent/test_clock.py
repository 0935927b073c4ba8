from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest

from standins.clock import FakeClock
from vacancy_agent.clock import SuspendWatch, SystemClock

if TYPE_CHECKING:
    from vacancy_agent.core.facts import Instant, Seconds


def test_the_system_clock_counts_up_and_knows_the_date() -> None:
    clock = SystemClock()
    first = clock.now()
    assert clock.now() >= first
    assert clock.awake() > 0
    assert abs(clock.wall() - time.time()) < 60


@pytest.mark.skipif(sys.platform != "linux", reason="CLOCK_BOOTTIME is Linux")
def test_now_is_the_clock_that_counts_suspend() -> None:
    low = time.clock_gettime(time.CLOCK_BOOTTIME)
    now = SystemClock().now()
    assert low <= now <= time.clock_gettime(time.CLOCK_BOOTTIME)


def test_a_sleep_is_seen_once() -> None:
    clock = FakeClock()
    watch = SuspendWatch(clock)
    clock.advance(3600)
    assert watch.slept() == 0.0
    clock.sleep(28_800)
    assert watch.slept() == pytest.approx(28_800)
    assert watch.slept() == 0.0


def test_a_second_sleep_is_seen_too() -> None:
    clock = FakeClock()
    watch = SuspendWatch(clock)
    clock.sleep(5)
    assert watch.slept() == pytest.approx(5)
    clock.advance(1)
    clock.sleep(7)
    assert watch.slept() == pytest.approx(7)


class _SlowReads(FakeClock):
    """Half a second passes with every read, as for a process that is not scheduled."""

    def now(self) -> Instant:
        self.advance(0.5)
        return super().now()

    def awake(self) -> Seconds:
        self.advance(0.5)
        return super().awake()


def test_a_process_that_is_not_scheduled_is_not_a_machine_that_slept() -> None:
    clock = _SlowReads()
    watch = SuspendWatch(clock)
    assert [watch.slept() for _ in range(20)] == [0.0] * 20
    clock.sleep(60)
    assert watch.slept() > 58


def test_the_real_clocks_report_no_sleep_while_awake() -> None:
    watch = SuspendWatch(SystemClock())
    assert not any(watch.slept() for _ in range(2000))
