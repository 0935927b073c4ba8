from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from vacancy_operator import log

if TYPE_CHECKING:
    import pytest


def test_a_line_is_one_line() -> None:
    assert log.line("lost", {"host": "box", "why": "no\nsign"}) == 'lost host=box why="no\\nsign"'


def test_trouble_is_told_once_and_its_end_once(caplog: pytest.LogCaptureFixture) -> None:
    trouble = log.Trouble("election")
    with caplog.at_level(logging.INFO, log.LOGGER.name):
        trouble.over()
        for _ in range(3):
            trouble.met("cut")
        trouble.over()
        trouble.over()
    assert caplog.messages == ["election failed error=cut", "election works again"]


def test_lines_go_to_standard_error_with_their_time(capsys) -> None:
    kopf, ours = logging.getLogger("kopf"), log.LOGGER
    before = (ours.handlers[:], ours.level, ours.propagate, kopf.level)
    try:
        log.set_up()
        log.tell("active", replica="a")
        assert kopf.level == logging.CRITICAL
    finally:
        ours.handlers[:], ours.level, ours.propagate = before[0], before[1], before[2]
        kopf.setLevel(before[3])
    text = capsys.readouterr().err
    assert text.endswith("Z active replica=a\n")
