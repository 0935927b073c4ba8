from __future__ import annotations

from vacancy_agent.core.facts import Instant
from vacancy_agent.upstreams.sighting import Working


def test_a_server_at_work_has_let_no_model_go_unless_it_says_so():
    assert not Working(Instant(1.0), "busy").gone
