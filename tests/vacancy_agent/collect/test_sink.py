from __future__ import annotations

from typing import TYPE_CHECKING

from standins.sink import RecordingSink
from vacancy_agent.core.facts import Instant, Unknown

if TYPE_CHECKING:
    from vacancy_agent.collect.sink import Sink


def test_the_stand_in_is_a_sink() -> None:
    recorder = RecordingSink()
    sink: Sink = recorder
    sink.set_capacity("gpu", Unknown("no driver"))
    sink.suspending(Instant(1.0))
    sink.resumed(Instant(2.0))
    assert recorder.capacity["gpu"] == [Unknown("no driver")]
    assert recorder.sleeps == [("suspending", 1.0), ("resumed", 2.0)]
