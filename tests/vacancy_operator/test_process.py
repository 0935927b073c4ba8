"""The operator as a process of its own, with exactly the rights that operator/manifests give it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from standins.operator_process import (
    ACCOUNT,
    Hosts,
    OperatorProcess,
    apply_policy,
    grant,
    operator,
    remove_policy,
    until,
)
from standins.operator_world import EXTERNAL
from vacancy_operator.access import Access
from vacancy_operator.api import Api
from vacancy_operator.core.kinds import KINDS, LENDING_HOST
from vacancy_operator.core.tokens import decoded
from vacancy_operator.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.kube_client import KubeClient
    from lab.kube_lab import KubeLab

pytestmark = pytest.mark.kube
LEASE_WRITES = {("update", "leases")}


@pytest.fixture
def hosts(kube: KubeClient, kube_namespace: str) -> Hosts:
    grant(kube, kube_namespace)
    apply_policy(kube, kube_namespace)
    return Hosts(kube, kube_namespace)


@pytest.fixture
def own_hosts(own_kube: KubeLab) -> Hosts:
    own_kube.make_namespace("lending")
    grant(own_kube, "lending")
    apply_policy(own_kube, "lending")
    return Hosts(own_kube, "lending")


@pytest.fixture
def running(hosts: Hosts, tmp_path: Path) -> Iterator[OperatorProcess]:
    with operator(hosts.cluster, hosts.namespace, tmp_path) as process:
        yield process
        assert process.end() == 0, process.log.read_text()[-3000:]


def joined(hosts: Hosts, name: str, **spec: Any) -> str:
    """An external host whose token is there; the token."""
    hosts.make(name, **EXTERNAL, **spec)
    until(lambda: decoded(hosts.get("secrets", f"lh-{name}-join"), "token"), 10)
    return decoded(hosts.get("secrets", f"lh-{name}-join"), "token") or ""


def serving(hosts: Hosts, name: str, **spec: Any) -> str:
    """The same with an agent that does what it should."""
    token = joined(hosts, name, **spec)
    agent = hosts.agent(name, token=token)
    agent.renew()
    agent.report()
    until(lambda: hosts.condition(name, "Ready") == ("True", "Serving"), 10)
    return token


def writes_of(lab: KubeLab, since: int) -> dict[tuple[str, str], int]:
    """What the operator wrote."""
    counted = lab.audit.counts(since, writes_only=True).items()
    return {(key.verb, key.resource): n for key, n in counted if key.user.endswith(f":{ACCOUNT}")}


@pytest.mark.usefixtures("running")
def test_an_agent_with_the_token_of_its_host_can_act_for_that_host_and_no_other(hosts: Hosts) -> None:
    cluster = hosts.cluster
    joined(hosts, "other")
    token = serving(hosts, "box")

    def ask(path: str, method: str = "GET", body: Any = None) -> int:
        kind = "application/apply-patch+yaml" if method == "PATCH" else "application/json"
        query = "?fieldManager=vacancy-agent&force=true" if method == "PATCH" else ""
        return cluster.request(method, path + query, body, token=token, content_type=kind).status

    one = f"{hosts.path('lendinghosts')}?fieldSelector=metadata.name%3Dbox"
    assert ask(one) == 200
    allowed = [
        ("lendinghosts", "box"),
        ("configmaps", "lh-box-config"),
        ("secrets", "lh-box-join"),
        ("leases", "lh-box"),
    ]
    assert [ask(hosts.path(*place)) for place in allowed] == [200] * 4
    forbidden = [
        ("lendinghosts", ""),
        ("lendinghosts", "other"),
        ("configmaps", "lh-other-config"),
        ("secrets", ""),
        ("secrets", "lh-other-join"),
        ("secrets", "lh-other-tokens"),
        ("secrets", "lh-box-tokens"),
        ("leases", "lh-other"),
        ("leases", "vacancy-operator"),
        ("roles", "lh-box"),
    ]
    assert {place: ask(hosts.path(*place)) for place in forbidden} == dict.fromkeys(forbidden, 403)
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "lh-other"},
        "spec": {},
    }
    assert ask(hosts.path("leases", "lh-other"), "PATCH", lease) == 403
    host = {
        "apiVersion": "vacancy.dev/v1alpha1",
        "kind": "LendingHost",
        "metadata": {"name": "box"},
        "spec": {},
    }
    assert ask(hosts.path("lendinghosts", "box"), "PATCH", host) == 403
    assert ask(hosts.path("lendinghosts", "other") + "/status", "PATCH", host) == 403
    assert ask(hosts.path("serviceaccounts", "lh-other") + "/token", "POST", {"spec": {}}) == 403
    hosts.delete("secrets", "lh-box-join")
    until(lambda: ask(hosts.path("configmaps", "lh-box-config")) == 401, 15)


@pytest.mark.usefixtures("running")
def test_tokens_are_kept_until_they_are_deleted(hosts: Hosts) -> None:
    serving(hosts, "box")
    first = hosts.get("secrets", "lh-box-tokens")
    config = hosts.get("configmaps", "lh-box-config")
    hosts.patch("secrets", "lh-box-tokens", {"metadata": {"labels": None}})
    until(lambda: "labels" in (hosts.get("secrets", "lh-box-tokens") or {})["metadata"], 10)
    assert (hosts.get("secrets", "lh-box-tokens") or {})["data"] == (first or {})["data"]
    hosts.delete("secrets", "lh-box-tokens")
    until(lambda: hosts.get("secrets", "lh-box-tokens"), 10)
    until(lambda: (hosts.get("configmaps", "lh-box-config") or {})["data"] != (config or {})["data"], 10)
    assert (hosts.get("secrets", "lh-box-tokens") or {})["data"] != (first or {})["data"]
    until(lambda: hosts.condition("box", "Ready") == ("False", "ConfigPending"), 10)


@pytest.mark.usefixtures("running")
def test_a_lost_agent_is_told_within_its_lease_and_its_return_too(hosts: Hosts) -> None:
    token = serving(hosts, "box")
    agent = hosts.agent("box", token=token)
    agent.renew(duration=4)
    gone = time.monotonic()
    until(lambda: hosts.condition("box", "AgentConnected") == ("Unknown", "AgentLost"), 9)
    assert time.monotonic() - gone > 3.5
    assert hosts.condition("box", "Lendable") == ("Unknown", "AgentLost")
    assert hosts.condition("box", "Ready") == ("False", "AgentLost")
    assert (hosts.get("lendinghosts", "box") or {})["status"]["lastSeen"]
    agent.renew()
    until(lambda: hosts.condition("box", "AgentConnected")[0] == "True", 10)
    assert "lastSeen" not in (hosts.get("lendinghosts", "box") or {})["status"]
    agent.report("False", reason="OwnerActive")
    until(lambda: hosts.condition("box", "Ready")[0] == "True", 10)
    assert hosts.condition("box", "Lendable") == ("False", "OwnerActive")
    reasons = [one["reason"] for one in hosts.list("events")]
    assert sorted(reasons) == ["AgentLost", "LeaseRenewed", "Valid"], "the same words are not said twice"


def test_a_host_in_the_cluster_has_an_identity_only_while_the_policy_is_in_force(
    hosts: Hosts, tmp_path: Path
) -> None:
    with operator(hosts.cluster, hosts.namespace, tmp_path, "--policy-every", "1"):
        _with_and_without_the_policy(hosts)


def _with_and_without_the_policy(hosts: Hosts) -> None:
    hosts.make("node-1")
    until(lambda: hosts.condition("node-1", "Accepted") == ("True", "Valid"), 10)
    assert hosts.get("serviceaccounts", "lh-node-1")
    assert hosts.get("secrets", "lh-node-1-join") is None
    remove_policy(hosts.cluster, hosts.namespace)
    until(lambda: hosts.condition("node-1", "Accepted") == ("False", "PolicyMissing"), 25)
    gone = ("serviceaccounts", "roles", "rolebindings")
    assert [hosts.get(plural, "lh-node-1") for plural in gone] == [None] * 3
    apply_policy(hosts.cluster, hosts.namespace)
    until(lambda: hosts.get("rolebindings", "lh-node-1"), 25)


@pytest.mark.usefixtures("running")
def test_a_name_that_is_somebody_elses_is_left_alone(hosts: Hosts) -> None:
    body = {"metadata": {"name": "lh-box-config"}, "data": {"x": "y"}}
    assert hosts.cluster.request("POST", hosts.path("configmaps"), body).status == 201
    hosts.make("box")
    until(lambda: hosts.condition("box", "Accepted") == ("False", "NameTaken"), 10)
    assert (hosts.get("configmaps", "lh-box-config") or {})["data"] == {"x": "y"}


def test_two_thousand_events_are_a_handful_of_decisions_and_leave_no_trace(
    hosts: Hosts, running: OperatorProcess
) -> None:
    serving(hosts, "box")
    count = "vacancy_operator_reconcile_seconds_count"
    events = "vacancy_operator_watch_events_total"
    decisions, seen, began = running.figure(count), running.figure(events), time.monotonic()
    asyncio.run(relabel(hosts, times=2000))
    seconds = time.monotonic() - began
    until(lambda: running.figure(events) - seen >= 2000, 20)
    time.sleep(1.0)
    assert running.figure(count) - decisions <= seconds / 0.5 + 4
    for kind in KINDS:
        for item in hosts.list(kind.plural):
            about = item["metadata"]
            ours = kind is LENDING_HOST or about["name"].startswith("lh-")
            assert not ours or not {"finalizers", "annotations"} & set(about)


async def relabel(hosts: Hosts, *, times: int) -> None:
    """That many edits of one host, in turn: side by side the API server does most of them twice."""
    api = Api(Access(hosts.cluster.kubeconfig), hosts.namespace, Metrics())
    path = hosts.path("lendinghosts", "box")
    try:
        for index in range(times):
            body = {"metadata": {"labels": {"n": str(index)}}}
            await api._call("PATCH", path, {}, body, "application/merge-patch+json")
    finally:
        await api.close()


def test_case_c02_status_of_fifty_agents_makes_the_operator_write_nothing(
    own_hosts: Hosts, own_kube: KubeLab, tmp_path: Path
) -> None:
    """No progress is kept on objects, nothing reacts to our own writes; steady state is Lease renewals."""
    with operator(own_kube, "lending", tmp_path) as process:
        names = [f"h{index}" for index in range(50)]
        for name in names:
            own_hosts.make(name, **EXTERNAL)
        until(lambda: all(own_hosts.get("leases", f"lh-{name}") for name in names), 60)
        for name in names:
            agent = own_hosts.agent(name)
            agent.renew()
            agent.report()
        until(lambda: all(own_hosts.condition(name, "Ready")[0] == "True" for name in names), 60)
        time.sleep(2.0)
        since, decisions = own_kube.audit.here(), process.figure("vacancy_operator_reconcile_seconds_count")
        for round_ in range(4):
            for name in names:
                own_hosts.agent(name).report(free=f"{round_}Gi")
                own_hosts.agent(name).renew()
        assert set(writes_of(own_kube, since)) == LEASE_WRITES
        assert process.figure("vacancy_operator_reconcile_seconds_count") - decisions <= 4 * 50 + 5
        assert process.end() == 0


def test_an_outage_of_the_api_server_loses_nothing_and_hides_nothing(
    own_hosts: Hosts, own_kube: KubeLab, tmp_path: Path
) -> None:
    """Killed and restarted, its watch cache is empty: kopf lists anew and tells of no deletion."""
    with operator(own_kube, "lending", tmp_path) as process:
        for name in ("box", "gone", "again"):
            serving(own_hosts, name)
        tokens = {name: own_hosts.get("secrets", f"lh-{name}-tokens") for name in ("box", "gone", "again")}
        made = {
            plural: len(own_hosts.list(plural)) for plural in ("secrets", "configmaps", "leases", "roles")
        }
        own_kube.api.kill()
        time.sleep(20.0)
        os.kill(process.process.pid, signal.SIGSTOP)
        own_kube.api.start()
        own_hosts.delete("lendinghosts", "gone")
        own_hosts.delete("secrets", "lh-box-tokens")
        own_hosts.delete("lendinghosts", "again")
        own_hosts.make("again", **EXTERNAL)
        since = own_kube.audit.here()
        os.kill(process.process.pid, signal.SIGCONT)
        assert own_hosts.condition("box", "AgentConnected")[0] == "True"
        until(lambda: own_hosts.get("secrets", "lh-box-tokens"), 30, lambda: process.log.read_text()[-2000:])
        until(lambda: own_hosts.condition("again", "Accepted")[0] == "True", 30)
        until(lambda: decoded(own_hosts.get("secrets", "lh-again-join"), "token"), 30)
        for name in ("box", "again"):
            fresh, old = own_hosts.get("secrets", f"lh-{name}-tokens"), tokens[name]
            assert (fresh or {})["data"] != (old or {})["data"]
        assert {plural: len(own_hosts.list(plural)) for plural in made} == made, "no duplicate, nothing lost"
        asked = [one for one in own_kube.audit.requests(since) if one.user.endswith(f":{ACCOUNT}")]
        touched = {one.name for one in asked if one.verb in {"create", "patch", "delete"}}
        assert not any("gone" in name for name in touched)
        own_hosts.agent("box").renew()
        own_hosts.agent("box").report()
        until(lambda: own_hosts.condition("box", "Ready")[0] == "True", 10)
        assert process.end() == 0


def test_one_replica_is_active_and_the_other_follows_it(hosts: Hosts, tmp_path: Path) -> None:
    with (
        operator(hosts.cluster, hosts.namespace, tmp_path, "--lease-duration", "6", name="op-1") as one,
        OperatorProcess(hosts.cluster, hosts.namespace, tmp_path, "op-2", "--lease-duration", "6") as two,
    ):
        until(lambda: two.get("/readyz") == (503, "standby\n"), 20)
        assert two.get("/healthz")[0] == 200
        one.end(kill=True)
        two.wait_active(20)
        hosts.make("box")
        until(lambda: hosts.condition("box", "Accepted")[0] == "True", 10)
        one.start()
        until(lambda: one.get("/readyz") == (503, "standby\n"), 20)
        assert two.end() == 0
        one.wait_active(4.0)
        assert one.end() == 0


def test_without_the_definitions_it_waits_for_them(
    own_hosts: Hosts, own_kube: KubeLab, tmp_path: Path
) -> None:
    crd = own_kube.kubectl("get", "crd", "lendinghosts.vacancy.dev", "-o", "json").stdout
    own_kube.kubectl("delete", "crd", "lendinghosts.vacancy.dev")
    with OperatorProcess(own_kube, "lending", tmp_path, "op-1") as process:
        until(lambda: "are the definitions applied" in process.log.read_text(), 20)
        assert process.get("/readyz")[0] == 503
        own_kube.kubectl("create", "-f", "-", stdin=crd)
        process.wait_active(30)
        until(lambda: own_kube.request("GET", own_hosts.path("lendinghosts")).status == 200, 20)
        own_hosts.make("box")
        until(lambda: own_hosts.condition("box", "Accepted")[0] == "True", 20)
        own_kube.kubectl("delete", "crd", "lendinghosts.vacancy.dev")
        assert process.process.wait(timeout=60) == 1, "a watch that ends ends the process"
        assert "the watches ended" in process.log.read_text()


@pytest.mark.usefixtures("running")
def test_join_prints_the_command_for_a_host_and_says_why_not_for_another(hosts: Hosts) -> None:
    token = joined(hosts, "box")
    ask = [sys.executable, "-m", "vacancy_agent.cli", "join", "--kubeconfig", str(hosts.cluster.kubeconfig)]

    def join(name: str) -> subprocess.CompletedProcess[str]:
        argv = [*ask, "--namespace", hosts.namespace, name]
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    done = join("box")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert "vacancy agent --join" in done.stdout
    assert token not in done.stdout, "packed"
    missing = join("nobody")
    assert missing.returncode == 2
    assert "spec.external" in missing.stderr
