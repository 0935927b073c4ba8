"""Times as people and JSON write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vacancy_agent.core.facts import WallTime

_LAST = 253402300799.0


def rfc3339(wall: WallTime) -> str:
    """Whole seconds, UTC: `2026-03-01T12:00:00Z`. Times past the year 9999 are written as its last second."""
    return datetime.fromtimestamp(min(wall, _LAST), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
