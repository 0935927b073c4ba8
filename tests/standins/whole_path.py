"""The whole path through a cluster: a real API server, the operator and agent as processes of their own."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from standins.agents import free_port
from standins.joined_process import JoinedProcess
from standins.operator_process import Hosts, OperatorProcess, apply_policy, grant, operator, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lab.kube_lab import KubeLab

NAME = "box"
Document = dict[str, Any]


@dataclass
class WholePath:
    """One namespace with one host."""

    cluster: KubeLab
    hosts: Hosts
    operator: OperatorProcess
    folder: Path

    def apply(self, spec: Document) -> None:
        """`kubectl apply -f`, as a person does it."""
        manifest = self.folder / "host.json"
        metadata = {"name": NAME, "namespace": self.hosts.namespace}
        manifest.write_text(
            json.dumps(
                {
                    "apiVersion": "vacancy.dev/v1alpha1",
                    "kind": "LendingHost",
                    "metadata": metadata,
                    "spec": spec,
                }
            )
        )
        self.cluster.kubectl("apply", "-f", str(manifest))

    def joined(self, *options: str) -> JoinedProcess:
        """An agent that joins as soon as the operator has made its identity."""
        until(self._can_join, 30.0, lambda: self.operator.log.read_text()[-3000:])
        return JoinedProcess(self.hosts, NAME, self.folder / "agent", *options)

    def condition(self, kind: str) -> tuple[str, str]:
        return self.hosts.condition(NAME, kind)

    def is_now(self, kind: str, status: str) -> bool:
        """Whether a condition has this status for the newest generation."""
        found = self.hosts.get("lendinghosts", NAME) or {}
        generation = found.get("metadata", {}).get("generation")
        return any(
            one["type"] == kind and one["status"] == status and one.get("observedGeneration") == generation
            for one in found.get("status", {}).get("conditions", [])
        )

    def agent_user(self) -> str:
        return f"system:serviceaccount:{self.hosts.namespace}:lh-{NAME}"

    def token(self, scope: str = "borrow") -> str:
        secret = self.hosts.get("secrets", f"lh-{NAME}-tokens")
        assert secret is not None
        return base64.b64decode(secret["data"][scope]).decode()

    def _can_join(self) -> bool:
        secret = self.hosts.get("secrets", f"lh-{NAME}-join")
        return secret is not None and "token" in secret["data"]


def lending(url: str, **changes: Any) -> Document:
    """A spec with one llamacpp upstream; `changes` are keys of the spec."""
    upstream = {
        "name": "llama",
        "dialect": "llamacpp",
        "target": url,
        "port": free_port(),
        "resource": "ram",
        "slots": 2,
        "onOwnerReturn": "cancel",
    }
    return {
        "external": {"address": "192.168.1.20"},
        "owner": {"presence": "headless"},
        "sampling": {"interval": "1s"},
        "resources": [{"name": "ram", "type": "memory"}],
        "access": {"listen": "127.0.0.1", "apiPort": free_port()},
        "upstreams": [upstream],
    } | changes


@contextmanager
def whole_path(cluster: KubeLab, folder: Path) -> Iterator[WholePath]:
    """An operator that is active, in a namespace without hosts."""
    namespace = cluster.make_namespace(f"t-{secrets.token_hex(4)}")
    grant(cluster, namespace)
    apply_policy(cluster, namespace)
    with operator(cluster, namespace, folder) as process:
        yield WholePath(cluster, Hosts(cluster, namespace), process, folder)


async def seconds_until(holds: Callable[[], object], within: float, explain: Callable[[], str]) -> float:
    """How long it took; the loop goes on meanwhile."""
    started = time.monotonic()
    while not await asyncio.to_thread(holds):
        assert time.monotonic() - started < within, explain()
        await asyncio.sleep(0.02)
    return time.monotonic() - started


def note(figure: str, seconds: float) -> None:
    """A figure for whoever runs the test with -rP."""
    print(f"{figure} = {seconds:.2f}")  # noqa: T201
