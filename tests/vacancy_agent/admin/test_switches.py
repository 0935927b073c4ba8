"""What a body must say, and that a wrong one is told what to change and switches nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from standins.hosts import host, upstream
from standins.running import StillAgent
from vacancy_agent.admin import switches
from vacancy_agent.admin.switches import LONGEST_PAUSE, WrongInputError

NOW = 1_700_000_000.0  # 2023-11-14T22:13:20Z, where the clock of a StillAgent stands
YEAR_ON = "2024-11-14T22:13:20Z"


def agent() -> StillAgent:
    return StillAgent(host([upstream("llm", ("gpu",))]))


def ask(change: Any, body: dict[str, Any], name: str = "") -> list[tuple[Any, ...]]:
    asked = agent()
    asyncio.run(change(asked, body, name))
    return asked.asked


def refusal(change: Any, body: dict[str, Any], name: str = "") -> WrongInputError:
    asked = agent()
    with pytest.raises(WrongInputError) as refused:
        asyncio.run(change(asked, body, name))
    assert asked.asked == []
    return refused.value


@pytest.mark.parametrize(
    ("body", "until"),
    [
        ({}, None),
        ({"for": "45m"}, NOW + 2700),
        ({"for": "1h30m"}, NOW + 5400),
        ({"for": "8784h"}, NOW + LONGEST_PAUSE),
        ({"until": "2023-11-14T23:13:20Z"}, NOW + 3600),
        ({"until": "2023-11-15T00:13:20+01:00"}, NOW + 3600),
        ({"until": YEAR_ON}, NOW + LONGEST_PAUSE),
    ],
)
def test_a_pause_ends_when_the_body_says(body: dict[str, Any], until: float | None):
    assert ask(switches.pause, body) == [("pause", until)]


@pytest.mark.parametrize(
    "length", ["", "2", "2 h", "-2h", "1.5h", "0s", "0h", "9000h", "forever", 2, 2.5, None, True, ["2h"], {}]
)
def test_a_wrong_duration_is_told_what_one_looks_like(length: object):
    refused = refusal(switches.pause, {"for": length})
    assert refused.status == 400
    assert str(refused) == '"for" must be a duration such as 45m, 2h or 1h30m, at most a year'


@pytest.mark.parametrize(
    "moment", ["", "tomorrow", "18:00", "2024-01-01", "2024-01-01T10:00:00", 5, None, []]
)
def test_a_time_needs_its_zone(moment: object):
    assert "RFC 3339 time with its zone, such as" in str(refusal(switches.pause, {"until": moment}))


@pytest.mark.parametrize(
    "moment", ["2023-11-14T22:13:20Z", "2023-11-14T22:13:19Z", "1970-01-01T00:00:00Z", "2024-11-14T22:13:21Z"]
)
def test_a_pause_ends_in_the_future_and_within_a_year(moment: str):
    assert "must lie in the future, at most a year ahead" in str(refusal(switches.pause, {"until": moment}))


def test_only_one_end_can_be_given():
    assert 'give "for" or "until", not both' in str(refusal(switches.pause, {"for": "2h", "until": YEAR_ON}))


@pytest.mark.parametrize(
    ("change", "body", "known"),
    [
        (switches.pause, {"duration": "2h"}, "for, until"),
        (switches.pause, {"for": "2h", "Until": YEAR_ON}, "for, until"),
        (switches.resume, {"now": True}, "none"),
        (switches.lending, {"enabled": True, "for": "2h"}, "enabled"),
    ],
)
def test_an_unknown_key_is_named_with_the_known_ones(change: Any, body: dict[str, Any], known: str):
    unknown = next(key for key in body if key not in known.split(", "))
    assert str(refusal(change, body)) == f"unknown key {unknown!r}; known keys: {known}"


def test_resume_and_the_switches_pass_on_what_was_said():
    assert ask(switches.resume, {}) == [("resume",)]
    assert ask(switches.lending, {"enabled": False}) == [("lending", False)]
    assert ask(switches.resource, {"enabled": True}, "gpu") == [("resource", "gpu", True)]


@pytest.mark.parametrize("change", [switches.lending, switches.resource])
@pytest.mark.parametrize("value", ["true", 1, 0, None, [], "off"])
def test_a_switch_is_true_or_false_and_nothing_like_it(change: Any, value: object):
    assert str(refusal(change, {"enabled": value}, "gpu")) == '"enabled" must be true or false'
    assert str(refusal(change, {}, "gpu")) == '"enabled" must be true or false'


def test_an_unknown_resource_is_not_found_and_the_known_ones_are_named():
    refused = refusal(switches.resource, {"enabled": True}, "gpu7")
    assert refused.status == 404
    assert str(refused) == "there is no resource 'gpu7'; there are: gpu"
