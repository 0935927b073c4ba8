"""The report as the resource takes it: whole by the contract, rounded, and nobody in it."""

from __future__ import annotations

from typing import Any

import pytest

from vacancy_agent.cluster.coalesce import Past, Wait, decide, moved
from vacancy_agent.cluster.report import Generations, snapshot
from vacancy_agent.core.conditions import Condition, Status
from vacancy_agent.core.facts import Instant, WallTime
from vacancy_api.reasons import ConditionType
from vacancy_api.status import LendingHostStatus

Document = dict[str, Any]


def agent(free: int | None = 8000, used: float | None = 12.0, **changes: Any) -> Document:
    return {
        "version": "0.1.0",
        "configDigest": "d" * 64,
        "clockSkewSeconds": 0.0,
        "address": None,
        "platform": "linux",
        "summary": {"freeVRAM": "7.8Gi", "models": [], "active": 0},
        "lending": {"allowed": True, "pausedUntil": None, "by": None},
        "resources": [
            {
                "name": "gpu",
                "type": "nvidia",
                "state": "ready",
                "reason": None,
                "freeMiB": free,
                "totalMiB": 24_564,
                "utilizationPercent": used,
                "enabled": True,
                "pressure": {"state": "clear", "thresholdPercent": None, "calibratedMinutes": None},
            }
        ],
        "upstreams": [
            {
                "name": "llama",
                "dialect": "llamacpp",
                "port": 8471,
                "bound": True,
                "lendable": True,
                "reason": None,
                "active": 0,
                "held": 0,
                "models": [],
                "listener": "unknown",
                "unseenGpuWork": False,
                "priorityScheduling": False,
            }
        ],
    } | changes


CONDITIONS = [
    Condition(ConditionType.CONFIG_APPLIED, Status.FALSE, "Invalid", "spec: x", WallTime(0.0)),
    Condition(ConditionType.LENDABLE, Status.TRUE, "WouldAdmit", "yes", WallTime(0.0)),
]


def shot(**changes: Any) -> Any:
    return snapshot(agent(**changes), CONDITIONS, Generations(running=4, judged=5))


def test_it_is_a_status_by_the_contract_without_a_null():
    status = shot().status
    parsed = LendingHostStatus.model_validate(status)
    assert parsed.model_dump(by_alias=True, exclude_unset=True) == status
    assert "None" not in str(status)


def test_memory_is_rounded_down_and_load_to_tens():
    (gpu,) = shot(free=8000, used=16.0).status["agent"]["resources"]
    assert (gpu["freeMiB"], gpu["utilizationPercent"], gpu["totalMiB"]) == (7680, 20, 24_564)
    assert shot(free=8000).status["agent"]["summary"]["freeVRAM"] == "7.5Gi"


def test_each_condition_says_which_generation_it_is_about():
    conditions = {one["type"]: one["observedGeneration"] for one in shot().status["conditions"]}
    assert conditions == {"ConfigApplied": 5, "Lendable": 4}


def test_a_sample_is_not_a_change_of_state():
    assert shot(free=8000, used=10.0).state == shot(free=4000, used=90.0).state
    assert moved(shot(free=8000).figures, shot(free=4000).figures)
    assert not moved(shot(free=8000).figures, shot(free=7300).figures)
    assert not moved(shot(used=10.0).figures, shot(used=19.0).figures)


def test_a_reading_that_is_lost_is_a_change_of_state():
    assert shot().state != shot(free=None).state


@pytest.mark.parametrize("key", ["lendable", "bound", "unseenGpuWork"])
def test_what_an_upstream_does_is_state(key: str):
    changed = agent()
    changed["upstreams"][0][key] = not changed["upstreams"][0][key]
    assert snapshot(changed, CONDITIONS, Generations(4, 5)).state != shot().state


def test_work_is_counted_apart():
    busy = agent()
    busy["upstreams"][0]["active"] = 1
    busy["summary"]["active"] = 1
    one = snapshot(busy, CONDITIONS, Generations(4, 5))
    assert (one.state, one.counts == shot().counts) == (shot().state, False)


def test_memory_unknown_to_the_agent_has_no_column():
    assert (
        "freeVRAM"
        not in shot(summary={"freeVRAM": None, "models": [], "active": 0}).status["agent"]["summary"]
    )


def test_a_clock_that_drifts_by_a_second_is_no_news():
    assert not moved(shot(clockSkewSeconds=0.0).figures, shot(clockSkewSeconds=1.0).figures)
    past = Past(Instant(0.0), shot(), Instant(0.0))
    assert decide(past, shot(clockSkewSeconds=1.0), Instant(1e6), 0.0) == Wait(None)
