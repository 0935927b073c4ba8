"""A cluster in a dictionary, for the operator's core: it carries plans out the way an API server would."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vacancy_operator.core import connection
from vacancy_operator.core.configuration import Configurations
from vacancy_operator.core.facts import Instant, JoinAddress, Now, Plan, Policy, Sight, Snapshot, Wall
from vacancy_operator.core.kinds import KINDS, Kind, Names, Object, Ref
from vacancy_operator.core.reconcile import decide

if TYPE_CHECKING:
    from collections.abc import Mapping

EPOCH = 1_800_000_000.0
SPARE = ("spare-borrow-" + "b" * 30, "spare-read-" + "r" * 30, "spare-admin-" + "a" * 30)
YEAR_S = 31_536_000.0

SPEC: dict[str, Any] = {
    "resources": [{"name": "ram", "type": "memory", "capacity": {"minFreeMiB": 4096}}],
    "upstreams": [
        {
            "name": "llama",
            "dialect": "llamacpp",
            "target": "http://127.0.0.1:8080",
            "port": 8471,
            "resource": "ram",
        }
    ],
}
EXTERNAL = {"external": {"address": "192.168.1.20"}}


def moment(seconds: float) -> Now:
    """A moment on both clocks, `seconds` after the test began."""
    return Now(Instant(1000.0 + seconds), Wall(EPOCH + seconds))


def lending_host(
    name: str = "box", *, uid: str = "uid-1", generation: int = 1, **spec: Any
) -> dict[str, Any]:
    """A LendingHost as the API server has it."""
    return {
        "apiVersion": "vacancy.dev/v1alpha1",
        "kind": "LendingHost",
        "metadata": {
            "name": name,
            "namespace": "lending",
            "uid": uid,
            "generation": generation,
            "resourceVersion": "10",
        },
        "spec": {**SPEC, **spec},
    }


def service_token(account_uid: str, secret_uid: str, issued: float, life: float = YEAR_S) -> str:
    """A token that says what a real one says; nobody checks its signature here."""
    claims = {
        "iat": int(issued),
        "exp": int(issued + life),
        "kubernetes.io": {"serviceaccount": {"uid": account_uid}, "secret": {"uid": secret_uid}},
    }
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{part}.sig"


@dataclass
class World:
    """One host and everything that exists around it."""

    host: dict[str, Any] | None = field(default_factory=lending_host)
    objects: dict[Ref, Object] = field(default_factory=dict)
    taken: frozenset[Ref] = frozenset()
    policy: Policy = Policy.IN_FORCE
    sight: Sight | None = None
    contact_since: Instant | None = field(default_factory=lambda: Instant(0.0))
    known: Configurations = field(default_factory=Configurations)
    writes: int = 0
    uids: int = 0

    @property
    def names(self) -> Names:
        assert self.host is not None
        return Names.of(self.host["metadata"]["name"])

    def snapshot(self, spare: tuple[str, str, str] = SPARE) -> Snapshot:
        return Snapshot(
            namespace="lending",
            host=self.host,
            owned=dict(self.objects),
            taken=self.taken,
            policy=self.policy,
            sight=self.sight,
            contact_since=self.contact_since,
            address=JoinAddress("https://10.0.0.1:6443", "CA"),
            spare=spare,
        )

    def decide(self, seconds: float = 0.0, spare: tuple[str, str, str] = SPARE) -> Plan:
        return decide(self.snapshot(spare), moment(seconds), self.known)

    def carry_out(self, plan: Plan, seconds: float = 0.0) -> None:
        for item in plan.delete:
            del self.objects[ref_of(item)]
        for item in plan.apply:
            self.put(item)
        if plan.mint is not None:
            self._mint(plan.mint.secret, plan.mint.account, seconds)
        if plan.status is not None:
            self._apply_status(plan.status)
        if plan.confirm_lease:
            self.sight = connection.confirmed(self.sight, moment(seconds))
        self.writes += (
            len(plan.delete) + len(plan.apply) + (plan.mint is not None) + (plan.status is not None)
        )

    def settle(self, seconds: float = 0.0, rounds: int = 6) -> Plan:
        """Decide and act until there is nothing left to do; returns the last, empty plan."""
        for _ in range(rounds):
            plan = self.decide(seconds)
            if plan.empty:
                return plan
            self.carry_out(plan, seconds)
        raise AssertionError(f"not settled after {rounds} rounds: {plan}")

    def put(self, item: Object) -> None:
        """Server-side apply, coarsely: what is said replaces what was there, and the identity stays."""
        ref = ref_of(item)
        live: Mapping[str, Any] = self.objects.get(ref, {})
        self.uids += not live
        uid = live.get("metadata", {}).get("uid") or f"made-{self.uids}"
        self.objects[ref] = {**live, **item, "metadata": {**item["metadata"], "uid": uid}}
        if ref == self.names.lease:
            self.see(0.0)

    def renew(self, seconds: float, holder: str = "agent-1", duration: int = 40) -> None:
        """The agent renews its Lease, and the operator sees it."""
        lease = dict(self.objects[self.names.lease])
        lease["spec"] = {
            "holderIdentity": holder,
            "renewTime": moment(seconds).text,
            "leaseDurationSeconds": duration,
        }
        self.objects[self.names.lease] = lease
        self.see(seconds)

    def see(self, seconds: float) -> None:
        self.sight = connection.observe(self.sight, self.objects.get(self.names.lease), moment(seconds))

    def report(self, *, bound: bool = True, digest: str | None = None, **conditions: str) -> None:
        """The agent's part of the status."""
        assert self.host is not None
        config = json.loads(self.objects[self.names.config]["data"]["agent.json"])
        status = self.host.setdefault("status", {})
        status["agent"] = {
            "configDigest": digest or config["digest"],
            "upstreams": [{"name": "llama", "bound": bound}],
        }
        for kind, value in conditions.items():
            self._put_condition({"type": kind, "status": value, "reason": "Said", "message": "by the agent"})

    def condition(self, kind: str) -> tuple[str, str]:
        assert self.host is not None
        found = {one["type"]: one for one in self.host.get("status", {}).get("conditions", [])}
        return (found[kind]["status"], found[kind]["reason"]) if kind in found else ("", "")

    def _mint(self, secret: Object, account: str, seconds: float) -> None:
        account_uid = self.objects[self.names.account]["metadata"]["uid"]
        secret_uid = self.objects[ref_of(secret)]["metadata"]["uid"]
        token = service_token(account_uid, secret_uid, EPOCH + seconds)
        assert account == self.names.account.name
        self.put({**secret, "data": {**secret["data"], "token": base64.b64encode(token.encode()).decode()}})

    def _apply_status(self, applied: Object) -> None:
        assert self.host is not None
        status = self.host.setdefault("status", {})
        status["observedGeneration"] = applied["status"]["observedGeneration"]
        status.pop("lastSeen", None)
        if "lastSeen" in applied["status"]:
            status["lastSeen"] = applied["status"]["lastSeen"]
        for one in applied["status"]["conditions"]:
            self._put_condition(one)

    def _put_condition(self, one: Mapping[str, Any]) -> None:
        assert self.host is not None
        conditions = self.host["status"].setdefault("conditions", [])
        conditions[:] = [other for other in conditions if other["type"] != one["type"]] + [dict(one)]


def ref_of(item: Object) -> Ref:
    """Where an object is."""
    kinds: dict[str, Kind] = {kind.name: kind for kind in KINDS}
    return Ref(kinds[item["kind"]], item["metadata"]["name"])
