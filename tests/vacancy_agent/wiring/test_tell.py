"""A log line can be read by people and taken apart by tools."""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING

import pytest

from vacancy_agent.wiring import tell as log

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """The agent's logger as it was before."""
    logger = log.LOGGER
    kept = (logger.handlers[:], logger.level, logger.propagate)
    yield logger
    logger.handlers[:], logger.level, logger.propagate = kept


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("llama", "llama"),
        (7, "7"),
        (True, "True"),
        ("a b", '"a b"'),
        ("", '""'),
        ('say "x"', r'"say \"x\""'),
        ("two\nlines", r'"two\nlines"'),
        ("\x1b[31m", r'"\u001b[31m"'),
        ("a=b", '"a=b"'),
        ("http://[::1]:8080/v1", '"http://[::1]:8080/v1"'),
        ("2026-12-24T18:00:00Z", "2026-12-24T18:00:00Z"),
        ("ends\n", r'"ends\n"'),
    ],
)
def test_a_value_is_quoted_where_it_must_be(value: object, shown: str):
    text = log.line("held", {"why": value})
    assert text == f"held why={shown}"
    if shown.startswith('"'):
        assert json.loads(text.partition("=")[2]) == value


def test_an_event_comes_first_and_its_facts_in_order():
    assert log.line("held", {"upstream": "llama", "job": 7}) == "held upstream=llama job=7"


def test_a_line_on_standard_error_begins_with_its_time(
    logger: logging.Logger, capsys: pytest.CaptureFixture[str]
):
    log.set_up()
    log.set_up()
    log.tell("held", job=7)
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z held job=7", line)


def test_quiet_shows_what_somebody_has_to_act_upon(
    logger: logging.Logger, capsys: pytest.CaptureFixture[str]
):
    log.set_up(logging.WARNING)
    log.tell("held", job=7)
    for event in sorted(log.WARNINGS):
        log.tell(event, why="x")
    shown = [line.split(" ", 1)[1] for line in capsys.readouterr().err.splitlines()]
    assert shown == [f"{event} why=x" for event in sorted(log.WARNINGS)]


def test_an_exception_keeps_its_traceback(logger: logging.Logger, capsys: pytest.CaptureFixture[str]):
    log.set_up()
    try:
        int("a bug")
    except ValueError:
        logger.exception("a part failed")
    shown = capsys.readouterr().err
    assert "a part failed\nTraceback" in shown
    assert shown.endswith("ValueError: invalid literal for int() with base 10: 'a bug'\n")


def test_the_newest_lines_are_kept_also_what_quiet_leaves_out(logger: logging.Logger):
    log.set_up(logging.WARNING)
    for job in range(log.KEPT_LINES + 10):
        log.tell("held", job=job)
    log.tell("held", why="x" * 5000)
    kept = log.recent()
    assert len(kept) == log.KEPT_LINES
    assert kept[0].endswith("Z held job=11")
    assert len(kept[-1]) == log.KEPT_CHARACTERS
