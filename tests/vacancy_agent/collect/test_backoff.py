from __future__ import annotations

from standins.clock import FakeClock
from vacancy_agent.collect.backoff import Backoff


def test_two_missed_deadlines_are_bad_luck_and_the_third_is_a_pause() -> None:
    backoff = Backoff(FakeClock())
    pauses: list[float] = []
    for _ in range(9):
        backoff.miss()
        pauses.append(backoff.remaining())
    assert pauses == [0, 0, 30, 60, 120, 240, 300, 300, 300]


def test_a_pause_ends_and_an_answer_forgets_it() -> None:
    clock = FakeClock()
    backoff = Backoff(clock)
    for _ in range(3):
        backoff.miss()
    clock.advance(29)
    assert float(backoff.remaining()) == 1
    clock.advance(2)
    assert float(backoff.remaining()) == 0
    backoff.miss()
    assert float(backoff.remaining()) == 60
    backoff.reset()
    assert float(backoff.remaining()) == 0
    assert backoff.missed == 0
