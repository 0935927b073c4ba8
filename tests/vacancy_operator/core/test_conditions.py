from __future__ import annotations

from typing import Any

import pytest

from standins.operator_world import lending_host, moment
from vacancy_operator.core import conditions
from vacancy_operator.core.configuration import Configured, Unacceptable, configure
from vacancy_operator.core.connection import Connection
from vacancy_operator.core.facts import Policy, Verdict
from vacancy_operator.core.kinds import Names

TOKENS = {"borrow": "B" * 43, "read": "R" * 43, "admin": "A" * 43}
YES = Verdict("Accepted", "True", "Valid", "")


def good() -> Configured:
    found = configure(lending_host(), TOKENS)
    assert isinstance(found, Configured)
    return found


def with_status(**status: Any) -> dict[str, Any]:
    return {**lending_host(), "status": status}


ACCEPTED: dict[str, tuple[Any, bool, Policy, bool, tuple[str, str]]] = {
    "wrong": (Unacceptable("spec.x"), False, Policy.IN_FORCE, False, ("False", "Invalid")),
    "name taken": (None, True, Policy.IN_FORCE, True, ("False", "NameTaken")),
    "in the cluster, policy there": (None, False, Policy.IN_FORCE, False, ("True", "Valid")),
    "in the cluster, policy missing": (None, False, Policy.MISSING, False, ("False", "PolicyMissing")),
    "in the cluster, policy unknown": (None, False, Policy.UNKNOWN, False, ("Unknown", "PolicyUnknown")),
    "external needs no policy": (None, False, Policy.MISSING, True, ("True", "Valid")),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    configured, taken, policy, external, expected = ACCEPTED[name]
    refs = [Names.of("box").config] if taken else []
    found = conditions.accepted(configured or good(), refs, policy, {}, external=external)
    assert (found.status, found.reason) == expected


def test_while_the_policy_is_unknown_the_last_word_stands() -> None:
    live = {"Accepted": {"status": "False", "reason": "PolicyMissing", "message": "m"}}
    found = conditions.accepted(good(), [], Policy.UNKNOWN, live, external=False)
    assert found == Verdict("Accepted", "False", "PolicyMissing", "m")


def report(*, digest: str | None = None, bound: bool = True) -> dict[str, Any]:
    return {
        "configDigest": digest or good().digest,
        "upstreams": [{"name": "llama", "bound": bound}],
    }


REFUSED = [{"type": "ConfigApplied", "status": "False", "reason": "Invalid", "message": "port 1"}]
READY: dict[str, tuple[dict[str, Any], Verdict, Connection, str]] = {
    "not accepted": ({}, Verdict("Accepted", "False", "Invalid", ""), Connection.CONNECTED, "NotAccepted"),
    "never joined": ({}, YES, Connection.NOT_JOINED, "NotJoined"),
    "lost": ({"agent": report()}, YES, Connection.LOST, "AgentLost"),
    "no report": ({}, YES, Connection.CONNECTED, "NoReport"),
    "older configuration": ({"agent": report(digest="0" * 64)}, YES, Connection.CONNECTED, "ConfigPending"),
    "refused configuration": (
        {"agent": report(digest="0" * 64), "conditions": REFUSED},
        YES,
        Connection.CONNECTED,
        "ConfigRefused",
    ),
    "a proxy is not bound": ({"agent": report(bound=False)}, YES, Connection.CONNECTED, "ProxyNotBound"),
    "an upstream is not reported": (
        {"agent": {**report(), "upstreams": []}},
        YES,
        Connection.CONNECTED,
        "ProxyNotBound",
    ),
    "serving": ({"agent": report()}, YES, Connection.CONNECTED, "Serving"),
}


@pytest.mark.parametrize("name", READY)
def test_ready(name: str) -> None:
    status, acceptance, connection, reason = READY[name]
    found = conditions.ready(with_status(**status), acceptance, connection, good())
    assert (found.status, found.reason) == ("True" if reason == "Serving" else "False", reason)


def test_a_wrong_spec_is_not_ready_even_where_the_old_one_runs() -> None:
    wrong = Unacceptable("spec")
    found = conditions.ready(with_status(agent=report()), YES, Connection.CONNECTED, wrong)
    assert found.reason == "ConfigPending"


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    host = lending_host()
    first = conditions.status_apply(host, [YES], None, moment(0))
    host["status"] = first["status"]
    assert not conditions.status_differs(host, first)
    same = conditions.status_apply(host, [YES], None, moment(60))
    assert same["status"]["conditions"][0]["lastTransitionTime"] == moment(0).text
    assert not conditions.status_differs(host, same)
    other = conditions.status_apply(host, [Verdict("Accepted", "False", "Invalid", "x")], None, moment(60))
    assert other["status"]["conditions"][0]["lastTransitionTime"] == moment(60).text
    assert conditions.status_differs(host, other)


def test_what_differs() -> None:
    host = lending_host()
    host["status"] = conditions.status_apply(host, [YES], None, moment(0))["status"]
    assert conditions.status_differs(host, conditions.status_apply(host, [YES], "then", moment(0)))
    newer = {**host, "metadata": {**host["metadata"], "generation": 2}}
    assert conditions.status_differs(newer, conditions.status_apply(newer, [YES], None, moment(0)))
    louder = Verdict("Accepted", "True", "Valid", "in other words")
    assert conditions.status_differs(host, conditions.status_apply(host, [louder], None, moment(0)))


def test_events_are_for_what_changed() -> None:
    host = lending_host()
    lost = conditions.agent_connected(Connection.LOST, "then")
    new = conditions.agent_connected(Connection.NOT_JOINED, None)
    wanted = conditions.status_apply(host, [YES, new], None, moment(0))
    assert [one.reason for one in conditions.notices(host, wanted)] == ["Valid"]
    host["status"] = wanted["status"]
    assert conditions.notices(host, wanted) == ()
    gone = conditions.notices(host, conditions.status_apply(host, [YES, lost], "then", moment(0)))
    assert [(one.reason, one.warning) for one in gone] == [("AgentLost", True)]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, Connection.NOT_JOINED),
        ({"status": "True", "reason": "LeaseRenewed"}, Connection.CONNECTED),
        ({"status": "Unknown", "reason": "AgentLost"}, Connection.LOST),
        ({"status": "Unknown", "reason": "NotJoined"}, Connection.NOT_JOINED),
    ],
)
def test_what_was_said_of_the_agent(said: dict[str, str], expected: Connection) -> None:
    assert conditions.connection_before({"AgentConnected": said}) is expected


def test_conditions_of_any_shape_are_read() -> None:
    assert conditions.live_conditions({"status": None}) == {}
    assert conditions.live_conditions(with_status(conditions=[None, {"type": "Ready"}])) == {
        "Ready": {"type": "Ready"}
    }
