from __future__ import annotations

from vacancy_agent.core.facts import Instant
from vacancy_agent.upstreams.sighting import Working


def test_work_of_unknown_tasks_is_not_work_of_none():
    assert Working(Instant(1.0), "busy").tasks is None
    assert Working(Instant(1.0), "busy", frozenset()) != Working(Instant(1.0), "busy")
