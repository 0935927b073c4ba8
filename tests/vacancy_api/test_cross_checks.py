from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from standins.anything import ANYTHING
from standins.manifests import manifest
from vacancy_api.cross_checks import cross_check
from vacancy_api.problems import path_of


def found(**spec: Any) -> dict[str, str]:
    return {path_of(problem.loc): problem.message for problem in cross_check(spec)}


def test_the_full_manifest_has_no_problem() -> None:
    assert cross_check(manifest()["spec"]) == []


def test_ports() -> None:
    problems = found(upstreams=[{"port": 1}, {"port": 8470}, {"port": 1}, {"port": True}, {}])
    assert problems["upstreams[1].port"].startswith("8470 is already the port of the API")
    assert "spec.upstreams[0]" in problems["upstreams[2].port"]
    assert len(problems) == 2


def test_the_api_port_is_the_one_that_is_written() -> None:
    assert found(access={"apiPort": 9}, upstreams=[{"port": 8470}]) == {}
    assert list(found(access={"apiPort": 9}, upstreams=[{"port": 9}])) == ["upstreams[0].port"]
    assert found(access={"apiPort": "9"}, upstreams=[{"port": 8470}]) == {}


@pytest.mark.parametrize("target", ["http://localhost:8471", "http://127.0.0.9:8470", "https://[::1]:8472"])
def test_an_upstream_is_not_the_agent_itself(target: str) -> None:
    problems = found(upstreams=[{"port": 8471, "target": target}, {"port": 8472}])
    assert "the agent's own" in problems["upstreams[0].target"]


def test_the_same_port_of_another_machine_is_fine() -> None:
    assert found(upstreams=[{"port": 8471, "target": "http://10.0.0.9:8471"}]) == {}


def test_days_are_listed_once() -> None:
    assert list(found(schedule={"windows": [{"days": ["Mon", "Mon"]}]})) == ["schedule.windows[0].days[1]"]


@pytest.mark.parametrize(
    ("limits", "wrong"),
    [
        ({"maxBufferedBodyMiB": 63}, True),
        ({"maxBufferedBodyMiB": 64}, False),
        ({"maxBufferedBodyMiB": 64, "maxRequestBodyMiB": 65}, True),
        ({"maxRequestBodyMiB": 512}, False),
        ({"maxBufferedBodyMiB": None, "maxRequestBodyMiB": 512}, False),
    ],
)
def test_the_budget_holds_the_largest_body(limits: dict[str, Any], wrong: bool) -> None:
    assert (list(found(limits=limits)) == ["limits.maxBufferedBodyMiB"]) is wrong


@given(ANYTHING)
def test_anything_at_all_can_be_checked(spec: object) -> None:
    cross_check(spec)
