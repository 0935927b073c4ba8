from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from standins.hosts import resource, upstream
from vacancy_agent.core.facts import Seconds
from vacancy_agent.core.settings import PressureMode, SamplingSettings, UpstreamSettings


@pytest.mark.parametrize(
    ("interval", "bound"), [(1.0, 15.0), (3.0, 15.0), (3.75, 15.0), (4.0, 16.0), (60.0, 240.0)]
)
def test_a_reading_is_stale_after_four_polls_and_never_before_fifteen_seconds(interval: float, bound: float):
    assert SamplingSettings(interval=Seconds(interval)).stale_after == bound


def test_what_is_not_written_asks_for_the_strictest():
    plain = upstream()
    assert (plain.slots, plain.management_allowed, plain.forward_authorization) == (1, False, False)
    assert plain.assume_ended_after is None
    assert resource().pressure.mode is PressureMode.OFF


def test_footprints_of_a_default_are_not_shared_for_writing():
    with pytest.raises(TypeError):
        upstream().footprints["m"] = None  # type: ignore[index]


def test_settings_cannot_be_changed_in_place():
    with pytest.raises(FrozenInstanceError):
        upstream().slots = 2  # type: ignore[misc]


def test_settings_that_say_the_same_are_equal_so_that_a_listener_can_be_left_alone():
    assert isinstance(upstream(), UpstreamSettings)
    assert upstream() == upstream()
    assert upstream(slots=2) != upstream()
