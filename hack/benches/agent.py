"""The whole agent as a process, as a person starts it: `vacancy agent --manifest FILE --state-dir DIR`."""

from __future__ import annotations

import http.client
import json
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benches.parts import LOOPBACK, Lab, Part, PartError, free_port, python_module

if TYPE_CHECKING:
    from pathlib import Path

LENDABLE_DEADLINE_S = 30.0
MANIFEST: dict[str, Any] = {
    "apiVersion": "vacancy.dev/v1alpha1",
    "kind": "LendingHost",
    "metadata": {"name": "bench", "namespace": "default"},
}


@dataclass(frozen=True, slots=True)
class Agent:
    """A running agent and how to reach it."""

    part: Part
    port: int
    """Of the one upstream's listener."""
    api_port: int
    borrow: str
    admin: str
    read: str

    @property
    def pid(self) -> int:
        """Of the agent's process."""
        return self.part.pid

    def call(
        self, method: str, path: str, body: object = None, *, token: str | None = None
    ) -> tuple[int, bytes]:
        """Ask the admin API. Returns status and body."""
        connection = http.client.HTTPConnection(LOOPBACK, self.api_port, timeout=10)
        headers = {"Authorization": f"Bearer {token or self.admin}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def free_holds(self) -> None:
        """Free what wrk left behind: it breaks off whatever is under way at its end, and that is held.

        The upstream here shows no metrics and is never quiet between two runs, so no proof would come.
        """
        for hold in json.loads(self.call("GET", "/admin/holds")[1])["holds"]:
            self.call("DELETE", f"/admin/holds/{hold['id']}")

    def prepare(self, path: str, body: object) -> tuple[socket.socket, bytes]:
        """An open connection and the bytes of an order: to send them is one system call, and no thread."""
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {LOOPBACK}\r\nAuthorization: Bearer {self.admin}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
        )
        return socket.create_connection((LOOPBACK, self.api_port), timeout=10), head.encode() + content

    def order(self, path: str, body: object) -> None:
        """Throw a switch.

        Raises:
            PartError: the agent said no.
        """
        status, answer = self.call("POST", path, body)
        if status // 100 != 2:
            raise PartError(f"POST {path}: {status} {answer[:300]!r}\n{self.part.last_words()}")

    def wait_lendable(self) -> None:
        """Wait until a request would be admitted and no earlier work is held.

        Raises:
            PartError: not in time; the message has the agent's own status.
        """
        deadline = time.monotonic() + LENDABLE_DEADLINE_S
        status: dict[str, Any] = {}
        while time.monotonic() < deadline:
            status = json.loads(self.call("GET", "/status", token=self.read)[1])
            (upstream,) = status["agent"]["upstreams"]
            if upstream["lendable"] and not upstream["held"] and not upstream["active"]:
                return
            time.sleep(0.05)
        raise PartError(f"the agent does not lend: {json.dumps(status)[:2000]}\n{self.part.last_words()}")


def manifest(port: int, api_port: int, target: int, *, owner: dict[str, Any] | None = None) -> dict[str, Any]:
    """One `openai` upstream with room for every connection of a benchmark; everything else is the default."""
    upstream = {
        "name": "bench",
        "dialect": "openai",
        "target": f"http://{LOOPBACK}:{target}",
        "port": port,
        "resource": "ram",
        "slots": 512,
        "onOwnerReturn": "cancel",
    }
    spec = {
        "owner": owner or {"presence": "headless"},
        "resources": [{"name": "ram", "type": "memory"}],
        "upstreams": [upstream],
        "access": {"listen": LOOPBACK, "apiPort": api_port},
        "limits": {"maxConnections": 600},
    }
    return {**MANIFEST, "spec": spec}


def start_agent(
    lab: Lab,
    target: int,
    *,
    owner: dict[str, Any] | None = None,
    sampling: dict[str, str] | None = None,
    env: dict[str, str] | None = None,
    profile_to: Path | None = None,
    pinned: bool = True,
) -> Agent:
    """Start the agent in front of the server at `target` and wait until it lends."""
    port, api_port = free_port(), free_port()
    content = manifest(port, api_port, target, owner=owner)
    if sampling:
        content["spec"]["sampling"] = sampling
    file = lab.directory / f"host-{port}.json"
    file.write_text(json.dumps(content))
    state = lab.directory / f"state-{port}"
    arguments = ("agent", "--manifest", str(file), "--state-dir", str(state))
    argv = python_module("vacancy_agent.cli", *arguments)
    if profile_to:
        argv = python_module("benches.profiled", str(profile_to), "vacancy_agent.cli", *arguments)
    cores = (lab.proxy_core,) if pinned else (lab.proxy_core, lab.load_core)
    part = lab.start("agent", argv, port=port, core=cores, env=env)
    part.wait_for_port(api_port)
    tokens = json.loads((state / "tokens.json").read_text())
    agent = Agent(part, port, api_port, tokens["borrow"], tokens["admin"], tokens["read"])
    agent.wait_lendable()
    return agent
