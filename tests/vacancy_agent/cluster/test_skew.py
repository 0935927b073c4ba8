"""The difference between two clocks, as far as an answer tells."""

from __future__ import annotations

import pytest

from vacancy_agent.cluster.skew import parse_date, skew
from vacancy_agent.core.facts import WallTime

NOW = 1_772_366_400.0


@pytest.mark.parametrize(
    ("sent", "received", "ahead"),
    [
        (NOW + 0.5, NOW + 0.6, 0.0),
        (NOW + 0.99, NOW + 1.2, 0.0),  # the Date was cut off
        (NOW - 3.0, NOW + 4.0, 0.0),  # a slow answer tells little
        (NOW + 10.5, NOW + 10.6, 10.0),
        (NOW - 10.5, NOW - 10.4, -11.0),
    ],
)
def test_what_cannot_be_seen_is_not_called_a_difference(sent: float, received: float, ahead: float):
    assert skew(WallTime(sent), WallTime(received), NOW) == ahead


def test_a_date_as_servers_write_it():
    assert parse_date("Sun, 01 Mar 2026 12:00:00 GMT") == NOW


@pytest.mark.parametrize("header", [None, "", "yesterday"])
def test_no_date(header: str | None):
    assert parse_date(header) is None
