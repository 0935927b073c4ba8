from __future__ import annotations

import pytest
from pydantic import ValidationError

from vacancy_api.status import AgentStatus, Condition, LendingHostStatus

REPORT = {
    "version": "0.1.0",
    "configDigest": "ab",
    "clockSkewSeconds": 0.2,
    "address": "10.0.0.4",
    "platform": "linux",
    "summary": {"freeVRAM": "11.5Gi", "models": ["m"], "active": 1},
    "lending": {"allowed": False, "pausedUntil": "2030-01-31T18:00:00Z", "by": "local"},
    "resources": [
        {
            "name": "gpu",
            "type": "nvidia",
            "state": "ready",
            "reason": None,
            "freeMiB": 11776,
            "totalMiB": 24564,
            "utilizationPercent": 10.0,
            "enabled": True,
            "pressure": {"state": "calibrating", "thresholdPercent": 10.0, "calibratedMinutes": 3.0},
        }
    ],
    "upstreams": [
        {
            "name": "u",
            "dialect": "ollama",
            "port": 8471,
            "bound": True,
            "lendable": False,
            "reason": "lending_disabled",
            "active": 1,
            "held": 0,
            "models": ["m"],
            "listener": "loopback_only",
            "unseenGpuWork": False,
            "priorityScheduling": False,
        }
    ],
}


def test_an_agents_report_is_read_and_written_as_it_is() -> None:
    assert AgentStatus.model_validate(REPORT).model_dump(by_alias=True) == REPORT


def test_what_a_newer_agent_adds_is_ignored() -> None:
    status = LendingHostStatus.model_validate({"agent": {**REPORT, "novel": 1}, "more": {}})
    assert status.agent == AgentStatus.model_validate(REPORT)


def test_a_conditions_status_is_one_of_three() -> None:
    made = {"type": "Ready", "status": "True", "reason": "X", "lastTransitionTime": "2030-01-31T18:00:00Z"}
    assert Condition.model_validate(made).observed_generation is None
    with pytest.raises(ValidationError):
        Condition.model_validate({**made, "status": True})
