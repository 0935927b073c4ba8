"""The operator's conditions of a host, and when they count as changed.

Invariant: a status that says the same is not written again, and a condition keeps the time of its last change
for as long as its status stays. `Ready` is about whether the host serves as configured, not about its owner:
it does not flap when somebody sits down at the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vacancy_api.reasons import ConditionType
from vacancy_operator.core.configuration import Configured, Unacceptable
from vacancy_operator.core.connection import Connection
from vacancy_operator.core.facts import Notice, Policy, Verdict
from vacancy_operator.core.kinds import Object, metadata

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vacancy_operator.core.facts import Now
    from vacancy_operator.core.kinds import Ref

AGENT_LOST = "AgentLost"
NOT_JOINED = "NotJoined"

_COMPARED = ("status", "reason", "message", "observedGeneration")


def live_conditions(host: Object) -> dict[str, Object]:
    """The conditions of a host by type."""
    found = _status(host).get("conditions")
    items = found if isinstance(found, list) else []
    return {str(item.get("type")): item for item in items if isinstance(item, Mapping)}


def connection_before(conditions: Mapping[str, Object]) -> Connection:
    """What the status says of the agent so far."""
    said = conditions.get(ConditionType.AGENT_CONNECTED, {})
    if said.get("status") == "True":
        return Connection.CONNECTED
    return Connection.LOST if said.get("reason") == AGENT_LOST else Connection.NOT_JOINED


def accepted(
    configured: Configured | Unacceptable,
    taken: Iterable[Ref],
    policy: Policy,
    live: Mapping[str, Object],
    *,
    external: bool,
) -> Verdict:
    """Whether the host can be served as it is written. While the policy is unknown: what was said last."""
    kind = ConditionType.ACCEPTED
    if isinstance(configured, Unacceptable):
        return Verdict(kind, "False", "Invalid", configured.message)
    names = sorted(map(str, taken))
    if names:
        message = f"{', '.join(names)} is not ours: rename the host, or delete what bears that name"
        return Verdict(kind, "False", "NameTaken", message)
    if external or policy is Policy.IN_FORCE:
        return Verdict(kind, "True", "Valid", "the configuration is made")
    if policy is Policy.UNKNOWN:
        said = live.get(kind, {})
        status, reason = said.get("status", "Unknown"), said.get("reason", "PolicyUnknown")
        message = said.get("message", "the admission policy could not be read yet")
        return Verdict(kind, str(status), str(reason), str(message))
    message = (
        "the admission policy that keeps nodes from each other's identity, or its binding, is missing: "
        "this host has no identity until an administrator applies them"
    )
    return Verdict(kind, "False", "PolicyMissing", message)


def agent_connected(connection: Connection, seen: str | None) -> Verdict:
    """Whether the agent is there; doubt is settled before anybody is told."""
    kind = ConditionType.AGENT_CONNECTED
    if connection is Connection.CONNECTED:
        return Verdict(kind, "True", "LeaseRenewed", "the agent renews its Lease")
    if connection is Connection.NOT_JOINED:
        return Verdict(kind, "Unknown", NOT_JOINED, "no agent has joined for this host yet")
    return Verdict(kind, "Unknown", AGENT_LOST, f"no sign of the agent since {seen or 'it joined'}")


def lendable_of_the_lost(seen: str | None) -> Verdict:
    """What stands in place of the lost agent's own word."""
    message = f"the agent's last report, of {seen or 'an unknown time'}, says nothing about now"
    return Verdict(ConditionType.LENDABLE, "Unknown", AGENT_LOST, message)


def ready(
    host: Object, acceptance: Verdict, connection: Connection, configured: Configured | Unacceptable
) -> Verdict:
    """Connected, running this generation's configuration, all proxies bound. First match decides."""
    kind = ConditionType.READY
    if acceptance.status != "True":
        return Verdict(kind, "False", "NotAccepted", f"{acceptance.reason}: {acceptance.message}"[:1000])
    if connection is not Connection.CONNECTED:
        reason = NOT_JOINED if connection is Connection.NOT_JOINED else AGENT_LOST
        return Verdict(kind, "False", reason, "there is no agent that serves this host")
    report = _status(host).get("agent")
    if not isinstance(report, Mapping):
        return Verdict(kind, "False", "NoReport", "the agent has not reported yet")
    if isinstance(configured, Unacceptable) or report.get("configDigest") != configured.digest:
        return _not_applied(live_conditions(host).get(ConditionType.CONFIG_APPLIED, {}))
    unbound = sorted(configured.upstreams - _bound(report))
    if unbound:
        return Verdict(kind, "False", "ProxyNotBound", f"no listener for {', '.join(unbound)}"[:1000])
    return Verdict(kind, "True", "Serving", "the agent runs this configuration and all its proxies are bound")


def status_apply(host: Object, verdicts: Iterable[Verdict], seen: str | None, now: Now) -> Object:
    """The operator's part of the status, as it is applied."""
    about, live = metadata(host), live_conditions(host)
    generation = about.get("generation", 0)
    conditions = [_condition(verdict, live.get(verdict.type, {}), generation, now) for verdict in verdicts]
    status = {"observedGeneration": generation, "conditions": conditions}
    return {
        "apiVersion": str(host["apiVersion"]),
        "kind": str(host["kind"]),
        "metadata": {
            "name": str(about["name"]),
            "namespace": str(about["namespace"]),
            "resourceVersion": str(about.get("resourceVersion", "")),
        },
        "status": {**status, "lastSeen": seen} if seen else status,
    }


def status_differs(host: Object, wanted: Object) -> bool:
    """Whether applying `wanted` would change anything that people read."""
    live, said = _status(host), wanted["status"]
    conditions = live_conditions(host)
    return (
        live.get("observedGeneration") != said["observedGeneration"]
        or live.get("lastSeen") != said.get("lastSeen")
        or any(_says_else(conditions.get(one["type"], {}), one) for one in said["conditions"])
    )


def notices(host: Object, wanted: Object) -> tuple[Notice, ...]:
    """An Event for each of our conditions whose status or reason changes; silence on what just began."""
    live = live_conditions(host)
    found = []
    for one in wanted["status"]["conditions"]:
        before = live.get(one["type"], {})
        changed = (before.get("status"), before.get("reason")) != (one["status"], one["reason"])
        told = one["type"] in (ConditionType.ACCEPTED, ConditionType.AGENT_CONNECTED)
        if told and changed and one["reason"] != NOT_JOINED:
            note = f"{one['type']} is {one['status']}: {one['message']}"
            found.append(Notice(one["reason"], note[:1000], warning=one["status"] != "True"))
    return tuple(found)


def _condition(verdict: Verdict, before: Object, generation: int, now: Now) -> dict[str, Any]:
    same = before.get("status") == verdict.status and before.get("lastTransitionTime")
    return {
        "type": str(verdict.type),
        "status": verdict.status,
        "reason": verdict.reason,
        "message": verdict.message,
        "observedGeneration": generation,
        "lastTransitionTime": str(before["lastTransitionTime"]) if same else now.text,
    }


def _says_else(before: Object, wanted: Object) -> bool:
    return any(before.get(key) != wanted[key] for key in _COMPARED)


def _not_applied(said: Object) -> Verdict:
    if said.get("status") == "False":
        message = f"the agent refuses the configuration: {said.get('message', '')}"[:1000]
        return Verdict(ConditionType.READY, "False", "ConfigRefused", message)
    message = "the agent does not run this configuration yet"
    return Verdict(ConditionType.READY, "False", "ConfigPending", message)


def _bound(report: Object) -> set[str]:
    items = report.get("upstreams")
    found = items if isinstance(items, list) else []
    return {str(one.get("name")) for one in found if isinstance(one, Mapping) and one.get("bound") is True}


def _status(host: Object) -> Object:
    found = host.get("status")
    return found if isinstance(found, Mapping) else {}
