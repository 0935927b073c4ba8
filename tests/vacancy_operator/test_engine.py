from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from standins.operator_process import Hosts
from vacancy_operator.access import Access
from vacancy_operator.core.kinds import KINDS, LENDING_HOST
from vacancy_operator.engine import Engine, EngineError, connection_info
from vacancy_operator.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from lab.kube_client import KubeClient
    from lab.kube_lab import KubeLab
    from vacancy_operator.core.kinds import Kind, Object

pytestmark = pytest.mark.kube


class Seen:
    """What an engine delivered, and a wait for it."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str | None, str]] = []
        self._news = asyncio.Event()

    def deliver(self, kind: Kind, what: str | None, item: Object) -> None:
        about: Mapping[str, Any] = item["metadata"]
        self.events.append((kind.name, what, about["name"]))
        self._news.set()

    async def wait(self, event: tuple[str, str | None, str]) -> None:
        async with asyncio.timeout(20):
            while event not in self.events:
                await self._news.wait()
                self._news.clear()


async def test_what_happens_is_delivered_and_nothing_is_written(
    kube: KubeClient, kube_namespace: str
) -> None:
    hosts, seen = Hosts(kube, kube_namespace), Seen()
    hosts.make("old")
    engine = Engine(Access(kube.kubeconfig), Settings(namespace=kube_namespace), seen.deliver)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(engine.run())
        await seen.wait((LENDING_HOST.name, None, "old"))
        await asyncio.to_thread(hosts.make, "new")
        await seen.wait((LENDING_HOST.name, "ADDED", "new"))
        await asyncio.to_thread(hosts.delete, "lendinghosts", "new")
        await seen.wait((LENDING_HOST.name, "DELETED", "new"))
        config = {"metadata": {"name": "lh-old-config"}}
        await asyncio.to_thread(kube.request, "POST", hosts.path("configmaps"), config)
        await asyncio.to_thread(hosts.make, "last")
        await seen.wait((LENDING_HOST.name, "ADDED", "last"))
        assert "lh-old-config" not in {name for _, _, name in seen.events}, "only what bears our label"
        task.cancel()
    about = (hosts.get("lendinghosts", "old") or {})["metadata"]
    assert "annotations" not in about
    assert "finalizers" not in about


async def test_a_watch_that_ends_ends_the_engine(own_kube: KubeLab) -> None:
    seen = Seen()
    Hosts(own_kube, own_kube.make_namespace("lending")).make("box")
    engine = Engine(Access(own_kube.kubeconfig), Settings(namespace="lending"), seen.deliver)
    with pytest.RaisesGroup(EngineError) if hasattr(pytest, "RaisesGroup") else pytest.raises(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(engine.run())
            await seen.wait((LENDING_HOST.name, None, "box"))
            await asyncio.to_thread(own_kube.kubectl, "delete", "crd", "lendinghosts.vacancy.dev")
            await asyncio.sleep(60)


async def test_both_clients_have_the_same_credentials(kube: KubeClient, kube_namespace: str) -> None:
    access = Access(kube.account_kubeconfig(kube_namespace, "somebody"))
    found = await connection_info(access)
    assert (found.server, bool(found.token), found.insecure) == (kube.server, True, False)


async def test_settings_of_kopf(kube: KubeClient) -> None:
    engine = Engine(Access(kube.kubeconfig), Settings(namespace="x"), lambda *_: None)
    found = engine._kopf_settings()
    assert found.peering.standalone
    assert found.scanning.disabled
    assert not found.posting.enabled
    assert found.watching.inactivity_timeout > 62
    assert len(found.watching.label_selectors) == len(KINDS) - 1
