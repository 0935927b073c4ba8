"""`vacancy operator` as a process under its own account, with exactly the rights of operator/manifests."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from standins.operator_world import SPEC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.kube_client import KubeClient

MANIFESTS = Path(__file__).resolve().parents[2] / "operator" / "manifests"
POLICY = "vacancy-agent-token"
ACCOUNT = "vacancy-operator"


class OperatorProcess:
    """One replica. Its log is in `log`."""

    def __init__(self, cluster: KubeClient, namespace: str, folder: Path, name: str, *arguments: str) -> None:
        self.port = _free_port()
        self.log = folder / f"{name}.log"
        self._argv = [
            *(sys.executable, "-m", "vacancy_agent.cli", "operator"),
            *("--kubeconfig", str(cluster.account_kubeconfig(namespace, ACCOUNT))),
            *("--namespace", namespace, "--listen", "127.0.0.1", "--port", str(self.port)),
            *("--name", name, "--policy", policy_name(namespace), *arguments),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def end(self, *, kill: bool = False) -> int:
        """The exit code."""
        if kill:
            self.process.kill()
        else:
            self.process.terminate()
        return self.process.wait(timeout=30)

    def get(self, path: str) -> tuple[int, str]:
        """What it says over HTTP; 0: nothing."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode()
        except OSError:
            return 0, ""

    def figure(self, name: str) -> float:
        """The sum of a metric over its labels."""
        lines = [
            line for line in self.get("/metrics")[1].splitlines() if line.split("{")[0].split(" ")[0] == name
        ]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    def wait_active(self, seconds: float = 30.0) -> None:
        until(lambda: self.get("/readyz")[0] == 200, seconds, lambda: self.log.read_text()[-3000:])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.end(kill=True)


def until(true: Callable[[], Any], seconds: float, explain: Callable[[], str] = lambda: "") -> None:
    """Look every 50 ms until something holds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds} s: {explain()}"
        time.sleep(0.05)


def policy_name(namespace: str) -> str:
    """Several tests share a cluster: each has its own policy."""
    return f"{POLICY}-{namespace}"


def grant(cluster: KubeClient, namespace: str) -> None:
    """The operator's account and rights, as they are written down, in this namespace."""
    text = (MANIFESTS / "rbac.yaml").read_text()
    text = text.replace("namespace: vacancy}", f"namespace: {namespace}}}").replace(
        POLICY, policy_name(namespace)
    )
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        text = text.replace(
            f"kind: {kind}\nmetadata: {{name: vacancy-operator}}",
            f"kind: {kind}\nmetadata: {{name: vo-{namespace}}}",
        )
    text = text.replace(
        "kind: ClusterRole, name: vacancy-operator", f"kind: ClusterRole, name: vo-{namespace}"
    )
    cluster.kubectl("apply", "-f", "-", stdin=text)


def apply_policy(cluster: KubeClient, namespace: str) -> None:
    """The admission policy for this namespace."""
    text = (MANIFESTS / "policy.yaml").read_text()
    text = text.replace(POLICY, policy_name(namespace)).replace(":vacancy:", f":{namespace}:")
    cluster.kubectl("apply", "-f", "-", stdin=text)


def remove_policy(cluster: KubeClient, namespace: str) -> None:
    cluster.kubectl("delete", "validatingadmissionpolicybinding", policy_name(namespace))


class Hosts:
    """LendingHosts in one namespace, as the administrator sees and makes them."""

    def __init__(self, cluster: KubeClient, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    def path(self, plural: str, name: str = "") -> str:
        roots = {
            "lendinghosts": "/apis/vacancy.dev/v1alpha1",
            "leases": "/apis/coordination.k8s.io/v1",
            "roles": "/apis/rbac.authorization.k8s.io/v1",
            "rolebindings": "/apis/rbac.authorization.k8s.io/v1",
            "events": "/apis/events.k8s.io/v1",
        }
        base = f"{roots.get(plural, '/api/v1')}/namespaces/{self.namespace}/{plural}"
        return f"{base}/{name}" if name else base

    def make(self, name: str, **spec: Any) -> dict[str, Any]:
        body = {
            "apiVersion": "vacancy.dev/v1alpha1",
            "kind": "LendingHost",
            "metadata": {"name": name},
            "spec": {**SPEC, **spec},
        }
        answer = self.cluster.request("POST", self.path("lendinghosts"), body)
        assert answer.status == 201, answer
        return dict(answer.body)

    def get(self, plural: str, name: str) -> dict[str, Any] | None:
        answer = self.cluster.request("GET", self.path(plural, name))
        return dict(answer.body) if answer.status == 200 else None

    def list(self, plural: str) -> list[dict[str, Any]]:
        return list(self.cluster.request("GET", self.path(plural)).body["items"])

    def delete(self, plural: str, name: str) -> None:
        answer = self.cluster.request("DELETE", self.path(plural, name))
        assert answer.status == 200, answer

    def patch(self, plural: str, name: str, body: Any) -> dict[str, Any]:
        answer = self.cluster.request(
            "PATCH", self.path(plural, name), body, content_type="application/merge-patch+json"
        )
        assert answer.status == 200, answer
        return dict(answer.body)

    def condition(self, name: str, kind: str) -> tuple[str, str]:
        found = self.get("lendinghosts", name) or {}
        for one in found.get("status", {}).get("conditions", []):
            if one["type"] == kind:
                return one["status"], one["reason"]
        return "", ""

    def agent(self, name: str, *, token: str | None = None) -> Agent:
        return Agent(self, name, token)


class Agent:
    """The agent's writes, made by hand: Lease and status, as field manager vacancy-agent."""

    def __init__(self, hosts: Hosts, name: str, token: str | None) -> None:
        self._hosts = hosts
        self._name = name
        self._token = token

    def _apply(self, path: str, body: dict[str, Any]) -> None:
        answer = self._hosts.cluster.request(
            "PATCH",
            f"{path}?fieldManager=vacancy-agent&force=true",
            body,
            content_type="application/apply-patch+yaml",
            token=self._token,
        )
        assert answer.status == 200, answer

    def renew(self, *, holder: str = "agent-1", duration: int = 40) -> None:
        now = time.time()
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e6):06d}Z"
        spec = {"holderIdentity": holder, "renewTime": text, "leaseDurationSeconds": duration}
        name = f"lh-{self._name}"
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name},
            "spec": spec,
        }
        self._apply(self._hosts.path("leases", name), body)

    def report(self, lendable: str = "True", *, reason: str = "Lendable", free: str = "8Gi") -> None:
        config = self._hosts.get("configmaps", f"lh-{self._name}-config")
        assert config is not None
        host = self._hosts.get("lendinghosts", self._name) or {}
        document = json.loads(config["data"]["agent.json"])
        bound = [
            {
                "name": one["name"],
                "dialect": one["dialect"],
                "port": one["port"],
                "bound": True,
                "lendable": lendable == "True",
            }
            for one in document["spec"]["upstreams"]
        ]
        before = {one["type"]: one for one in host.get("status", {}).get("conditions", [])}
        condition = {
            "type": "Lendable",
            "status": lendable,
            "reason": reason,
            "message": "",
            "lastTransitionTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "observedGeneration": document["host"]["generation"],
        }
        if before.get("Lendable", {}).get("status") == lendable:
            condition["lastTransitionTime"] = before["Lendable"]["lastTransitionTime"]
        agent = {
            "version": "0",
            "configDigest": document["digest"],
            "lending": {"allowed": True},
            "upstreams": bound,
            "summary": {"freeVRAM": free, "models": [], "active": 0},
        }
        body = {
            "apiVersion": "vacancy.dev/v1alpha1",
            "kind": "LendingHost",
            "metadata": {"name": self._name},
            "status": {"agent": agent, "conditions": [condition]},
        }
        self._apply(self._hosts.path("lendinghosts", self._name) + "/status", body)


@contextmanager
def operator(
    cluster: KubeClient, namespace: str, folder: Path, *arguments: str, name: str = "op-1"
) -> Iterator[OperatorProcess]:
    """A replica that is the active one."""
    with OperatorProcess(cluster, namespace, folder, name, *arguments) as process:
        process.wait_active()
        yield process


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
