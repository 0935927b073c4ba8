from __future__ import annotations

import pytest

from vacancy_agent.core.facts import WallTime
from vacancy_agent.core.rfc3339 import rfc3339


@pytest.mark.parametrize(
    ("wall", "text"),
    [
        (0.0, "1970-01-01T00:00:00Z"),
        (1_772_366_490.9, "2026-03-01T12:01:30Z"),
        (1e15, "9999-12-31T23:59:59Z"),
        (float("inf"), "9999-12-31T23:59:59Z"),
    ],
)
def test_written_as_whole_seconds_in_utc(wall: float, text: str) -> None:
    assert rfc3339(WallTime(wall)) == text
