"""The agent's report in the form that the status of the resource takes: rounded, and without what is unknown.

Invariant: the result holds what `admin.report.agent_status` and the conditions say and nothing else, so what
is for the owner alone (`owner` of `/status`) has no way into the resource. Free memory is rounded down: a
status may promise less than there is, never more.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from vacancy_agent.cluster.coalesce import Figure, Snapshot
from vacancy_agent.core.rfc3339 import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from vacancy_agent.core.conditions import Condition

Document = dict[str, Any]

STEP_MIB = 512
STEP_PERCENT = 10
TENTH = 0.1
_COUNTS = {"active", "held"}
_LONGEST_REASON = 1024


def snapshot(agent: Mapping[str, Any], conditions: Iterable[Condition], generations: Generations) -> Snapshot:
    """A report, ready to be judged and written.

    Args:
        agent: what `admin.report.agent_status` says.
        conditions: the agent's conditions.
        generations: which generation of the spec each of them is about.
    """
    shown = _rounded(agent)
    told = [_condition(one, generations) for one in conditions]
    status = {"agent": shown, "conditions": told}
    state = {"agent": _state(shown), "conditions": told}
    lends = any(one["type"] == "Lendable" and one["status"] == "True" for one in told)
    return Snapshot(_text(state), lends, _text(_counts(shown)), dict(_figures(agent)), status)


class Generations:
    """Generations of the spec: of the configuration that runs, and of the newest one that was judged."""

    def __init__(self, running: int | None, judged: int | None) -> None:
        self.running = running
        self.judged = judged

    def of(self, condition: Condition) -> int | None:
        """The generation that a condition is about; None: of none."""
        return self.judged if condition.type.value == "ConfigApplied" else self.running


def _condition(condition: Condition, generations: Generations) -> Document:
    return _known(
        {
            "type": condition.type.value,
            "status": condition.status.value,
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": rfc3339(condition.since),
            "observedGeneration": generations.of(condition),
        }
    )


def _rounded(agent: Mapping[str, Any]) -> Document:
    resources = [_resource(one) for one in agent["resources"]]
    shown = {
        **agent,
        "summary": _known({**agent["summary"], "freeVRAM": free_vram(resources, agent["summary"])}),
        "lending": _known(agent["lending"]),
        "resources": resources,
        "upstreams": [_known(one) for one in agent["upstreams"]],
    }
    return _known(shown)


def _resource(resource: Mapping[str, Any]) -> Document:
    shown = dict(resource)
    if shown["freeMiB"] is not None:
        shown["freeMiB"] = int(shown["freeMiB"]) // STEP_MIB * STEP_MIB
    if shown["utilizationPercent"] is not None:
        shown["utilizationPercent"] = int(round(shown["utilizationPercent"] / STEP_PERCENT) * STEP_PERCENT)
    if shown["reason"] is not None:
        shown["reason"] = shown["reason"][:_LONGEST_REASON]
    if shown["pressure"] is not None:
        shown["pressure"] = _known(shown["pressure"])
    return _known(shown)


def free_vram(resources: Iterable[Mapping[str, Any]], summary: Mapping[str, Any]) -> str | None:
    """The sum of what the GPUs' entries show; None where the agent does not know it."""
    if summary["freeVRAM"] is None:
        return None
    gpus = [one for one in resources if one["type"] in {"nvidia", "amd"}]
    return f"{sum(one.get('freeMiB', 0) for one in gpus) / 1024:.1f}Gi"


def _figures(agent: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    skew = agent["clockSkewSeconds"]
    if skew is not None:
        yield "skew", Figure(skew, max(1.0, abs(skew) * TENTH))
    for one in agent["resources"]:
        name = one["name"]
        if one["freeMiB"] is not None:
            yield f"{name} free", Figure(one["freeMiB"], one["freeMiB"] * TENTH)
        if one["utilizationPercent"] is not None:
            yield f"{name} used", Figure(one["utilizationPercent"], 100 * TENTH)
        for key, value in (one["pressure"] or {}).items():
            if isinstance(value, (int, float)):
                yield f"{name} {key}", Figure(value, abs(value) * TENTH)


def _state(shown: Mapping[str, Any]) -> Document:
    """The report with its numbers replaced by whether they are there."""
    rest = {key: value for key, value in shown.items() if key not in {"summary", "clockSkewSeconds"}}
    rest["models"] = shown["summary"]["models"]
    rest["upstreams"] = [{k: v for k, v in one.items() if k not in _COUNTS} for one in shown["upstreams"]]
    rest["resources"] = [_without_numbers(one) for one in shown["resources"]]
    return rest


def _without_numbers(resource: Mapping[str, Any]) -> Document:
    numbers = {"freeMiB", "utilizationPercent"}
    plain: Document = {key: key if key in numbers else value for key, value in resource.items()}
    if "pressure" in plain:
        plain["pressure"] = plain["pressure"].get("state")
    return plain


def _counts(shown: Mapping[str, Any]) -> list[Any]:
    return [[one["name"], one["active"], one["held"]] for one in shown["upstreams"]]


def _known(document: Mapping[str, Any]) -> Document:
    """Without what is null: an optional field that is not known is absent."""
    return {key: value for key, value in document.items() if value is not None}


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
