from __future__ import annotations

import logging

from vacancy_operator import log


def test_a_line_is_one_line() -> None:
    assert log.line("lost", {"host": "box", "why": "no\nsign"}) == 'lost host=box why="no\\nsign"'


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
