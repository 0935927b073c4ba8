from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

from vacancy_agent.core.facts import (
    CpuCapacity,
    Instant,
    MemoryCapacity,
    MiB,
    Percent,
    ProcessIdentity,
    Ready,
    Stale,
    Unknown,
)

CARD = MemoryCapacity(MiB(100), MiB(200))


@pytest.mark.parametrize(
    "reading", [Unknown("no answer"), Ready(CARD, Instant(1.0)), Stale(CARD, Instant(1.0), "slept")]
)
def test_a_reading_cannot_be_changed_after_it_was_taken(reading: object):
    with pytest.raises(FrozenInstanceError):
        setattr(reading, fields(reading)[0].name, None)  # type: ignore[arg-type]


def test_not_knowing_is_no_number_and_needs_a_reason():
    assert not hasattr(Unknown("no answer"), "value")
    with pytest.raises(TypeError):
        Unknown()  # type: ignore[call-arg]


def test_the_same_figures_of_another_kind_or_time_are_another_reading():
    assert Ready(CARD, Instant(1.0)) != Ready(CARD, Instant(2.0))
    assert Ready(CARD, Instant(1.0)) != Stale(CARD, Instant(1.0), "slept")
    assert CpuCapacity(Percent(100.0)) != MemoryCapacity(MiB(100), MiB(100))


def test_utilisation_that_was_not_read_is_none_and_not_zero():
    assert CARD.utilization is None


def test_a_process_is_not_its_successor_with_the_same_number():
    assert ProcessIdentity(7, 1.0) != ProcessIdentity(7, 2.0)
