"""A host in a stand-in cluster: its objects, its join folder, and its agent on the test's own loop."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from standins.kube_api import TOKEN, KubeApi
from vacancy_agent.clock import SystemClock
from vacancy_agent.cluster.identity import Identity, read_identity
from vacancy_agent.store.state import StateDir
from vacancy_agent.wiring.joined import JoinedAgent
from vacancy_api.agent_config import TokenDigest, build_agent_config
from vacancy_api.lending_host import LendingHost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

NAMESPACE, NAME = "lending", "box"
CONFIGMAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
HOSTS = f"/apis/vacancy.dev/v1alpha1/namespaces/{NAMESPACE}/lendinghosts"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
BORROW = "a-borrower"

Document = dict[str, Any]


def join_folder(folder: Path, server: str, **files: str | None) -> Path:
    """The files of a join Secret; `files` replace some, None leaves one out."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {"server": server, "token": TOKEN, "namespace": NAMESPACE, "name": NAME} | files
    for key, content in contents.items():
        if content is not None:
            (folder / key.replace("_", ".")).write_text(content + "\n")
    return folder


def identity(folder: Path, server: str) -> Identity:
    return read_identity(join_folder(folder, server))


def spec(manifest: Document) -> Document:
    """The spec of `standins.agents.manifest`, listening here."""
    access = {"listen": "127.0.0.1", **manifest["spec"].get("access", {})}
    return {**manifest["spec"], "access": access}


def agent_json(spec: Document, *, uid: str = "", generation: int = 1) -> str:
    """What the operator would write for this spec."""
    host = LendingHost.model_validate(
        {
            "apiVersion": "vacancy.dev/v1alpha1",
            "kind": "LendingHost",
            "metadata": {"namespace": NAMESPACE, "name": NAME, "uid": uid, "generation": generation},
            "spec": spec,
        }
    )
    tokens = [
        TokenDigest.of("host/borrow", ["borrow"], BORROW),
        TokenDigest.of("host/read", ["read"], "reader"),
    ]
    return build_agent_config(host, tokens).to_json()


def host(api: KubeApi, spec: Document, *, generation: int = 1, name: str = NAME) -> Document:
    """Put the LendingHost there."""
    metadata = {"namespace": NAMESPACE, "name": name, "generation": generation}
    known = api.get(HOSTS, name) or {}
    return api.put(
        HOSTS, {"metadata": metadata, "spec": spec, **{k: known[k] for k in ("status",) if k in known}}
    )


def config(api: KubeApi, text: str) -> Document:
    """Put the ConfigMap there."""
    return api.put(CONFIGMAPS, {"metadata": {"name": f"lh-{NAME}-config"}, "data": {"agent.json": text}})


def serve(api: KubeApi, spec: Document, *, generation: int = 1) -> None:
    """LendingHost and ConfigMap, as user and operator leave them."""
    uid = host(api, spec, generation=generation)["metadata"]["uid"]
    config(api, agent_json(spec, uid=uid, generation=generation))


def secret(api: KubeApi, name: str, **data: str) -> None:
    encoded = {
        key.replace("_", "."): base64.b64encode(value.encode()).decode() for key, value in data.items()
    }
    api.put(SECRETS, {"metadata": {"name": name}, "data": encoded})


def condition(api: KubeApi, kind: str) -> Document:
    """A condition of the host as it stands in the cluster; empty: it has none."""
    conditions = ((api.get(HOSTS, NAME) or {}).get("status") or {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == kind), {})


@dataclass
class Membership:
    """A joined agent that runs."""

    whole: JoinedAgent
    told: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def told_of(self, event: str) -> list[dict[str, object]]:
        return [facts for name, facts in self.told if name == event]


@contextlib.asynccontextmanager
async def member(folder: Path, server: str) -> AsyncIterator[Membership]:
    """A joined agent for the length of the block; its state directory is kept for the next one."""
    who = identity(folder / "join", server)
    state = StateDir(folder / "state")
    told: list[tuple[str, dict[str, object]]] = []
    whole = JoinedAgent(who, state, SystemClock(), lambda event, **facts: told.append((event, facts)))
    ready = asyncio.Event()
    running = asyncio.get_running_loop().create_task(whole.run(ready))
    waiting = asyncio.get_running_loop().create_task(ready.wait())
    try:
        await asyncio.wait([running, waiting], return_when="FIRST_COMPLETED")
        if running.done():
            running.result()
        yield Membership(whole, told)
        if running.done():
            running.result()
    finally:
        waiting.cancel()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await whole.close()
        state.close()
