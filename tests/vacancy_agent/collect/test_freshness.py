from __future__ import annotations

from vacancy_agent.collect.freshness import Freshness
from vacancy_agent.core.facts import Instant, Ready, Seconds, Unknown


def judged(freshness: Freshness, began: float, ended: float) -> object:
    return freshness.judged(Ready(7, Instant(began)), Instant(began), Instant(ended))


def test_a_sample_in_time_is_what_it_is() -> None:
    assert judged(Freshness(Seconds(15.0)), 100, 115) == Ready(7, Instant(100.0))


def test_a_sample_that_took_too_long_is_discarded() -> None:
    verdict = judged(Freshness(Seconds(15.0)), 100, 115.5)
    assert isinstance(verdict, Unknown)
    assert "took" in verdict.why


def test_a_sample_that_began_before_the_machine_slept_is_discarded() -> None:
    freshness = Freshness(Seconds(15.0))
    freshness.resumed(Instant(101.0))
    assert isinstance(judged(freshness, 100, 102), Unknown)
    assert isinstance(judged(freshness, 101, 102), Ready)
