from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from standins.operator_process import Hosts
from standins.operator_world import lending_host
from vacancy_operator.access import Access
from vacancy_operator.api import Api, ApiError, Contact
from vacancy_operator.core import objects
from vacancy_operator.core.kinds import CONFIG_MAP, LENDING_HOST, SECRET, SERVICE_ACCOUNT, Names, Ref, uid
from vacancy_operator.core.tokens import claims
from vacancy_operator.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from lab.kube_client import KubeClient

NOWHERE = """\
{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}],
clusters: [{name: x, cluster: {server: "http://127.0.0.1:9"}}], users: [{name: x, user: {token: t}}]}
"""
NAMES = Names.of("box")
OWNER = lending_host(uid="2f2b7a3e-0000-4000-8000-000000000000")


def test_contact_is_unbroken_while_no_gap_is_too_long() -> None:
    contact = Contact(15.0)
    assert contact.since(0.0) is None
    for at in (10.0, 20.0, 35.0):
        contact.made(at)
    assert contact.since(40.0) == 10.0
    assert contact.since(50.1) is None
    contact.made(60.0)
    assert contact.since(60.0) == 60.0


@asynccontextmanager
async def opened(kubeconfig: Path, namespace: str) -> AsyncIterator[Api]:
    api = Api(Access(kubeconfig), namespace, Metrics())
    try:
        yield api
    finally:
        await api.close()


def owned(ref: Ref, namespace: str) -> dict[str, object]:
    item = objects.skeleton(ref, OWNER)
    return {**item, "metadata": {**item["metadata"], "namespace": namespace}}


@pytest.mark.kube
async def test_objects_are_applied_read_listed_and_deleted(kube: KubeClient, kube_namespace: str) -> None:
    async with opened(kube.kubeconfig, kube_namespace) as api:
        made = await api.apply(
            CONFIG_MAP, {**owned(NAMES.config, kube_namespace), "data": {"agent.json": "{}"}}
        )
        assert (await api.get(NAMES.config) or {})["metadata"]["uid"] == uid(made)
        listed, at = await api.list(CONFIG_MAP)
        assert [one["metadata"]["name"] for one in listed] == [NAMES.config.name], "by our label alone"
        assert at >= int(made["metadata"]["resourceVersion"])
        other = {**made, "metadata": {**made["metadata"], "uid": OWNER["metadata"]["uid"]}}
        with pytest.raises(ApiError) as refused:
            await api.delete(CONFIG_MAP, other)
        assert refused.value.conflict
        await api.delete(CONFIG_MAP, made)
        await api.delete(CONFIG_MAP, made)
        assert await api.get(NAMES.config) is None


@pytest.mark.kube
async def test_a_list_of_many_pages_is_whole(kube: KubeClient, kube_namespace: str, monkeypatch) -> None:
    monkeypatch.setattr("vacancy_operator.api.PAGE", 2)
    async with opened(kube.kubeconfig, kube_namespace) as api:
        for index in range(5):
            await api.apply(CONFIG_MAP, owned(Names.of(f"h{index}").config, kube_namespace))
        assert len((await api.list(CONFIG_MAP))[0]) == 5


@pytest.mark.kube
async def test_a_field_that_the_schema_does_not_know_is_refused(
    kube: KubeClient, kube_namespace: str
) -> None:
    hosts = Hosts(kube, kube_namespace)
    made = hosts.make("box")
    status = {"observedGeneration": 1, "conditions": [], "surprise": True}
    item = {
        "apiVersion": made["apiVersion"],
        "kind": made["kind"],
        "metadata": {"name": "box"},
        "status": status,
    }
    async with opened(kube.kubeconfig, kube_namespace) as api:
        with pytest.raises(ApiError, match="surprise"):
            await api.apply(LENDING_HOST, item, "status")


@pytest.mark.kube
async def test_a_status_of_an_older_object_is_refused(kube: KubeClient, kube_namespace: str) -> None:
    hosts = Hosts(kube, kube_namespace)
    old = hosts.make("box")
    hosts.delete("lendinghosts", "box")
    hosts.make("box")
    about = {"name": "box", "resourceVersion": old["metadata"]["resourceVersion"]}
    item = {
        "apiVersion": old["apiVersion"],
        "kind": old["kind"],
        "metadata": about,
        "status": {"observedGeneration": 1},
    }
    async with opened(kube.kubeconfig, kube_namespace) as api:
        with pytest.raises(ApiError) as refused:
            await api.apply(LENDING_HOST, item, "status")
        assert refused.value.conflict


@pytest.mark.kube
async def test_a_token_is_bound_to_its_secret(kube: KubeClient, kube_namespace: str) -> None:
    async with opened(kube.kubeconfig, kube_namespace) as api:
        account = await api.apply(SERVICE_ACCOUNT, owned(NAMES.account, kube_namespace))
        secret = await api.apply(SECRET, owned(NAMES.join, kube_namespace))
        found = claims(await api.token(NAMES.account.name, secret, 86_400))
        assert found is not None
        assert (found.account_uid, found.secret_uid) == (uid(account), uid(secret))
        assert found.expires - found.issued == 86_400


@pytest.mark.kube
async def test_credentials_are_read_anew_after_a_refusal(
    kube: KubeClient, kube_namespace: str, tmp_path: Path
) -> None:
    good = kube.account_kubeconfig(kube_namespace, "somebody").read_text()
    token = next(line for line in good.splitlines() if "token" in line)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(good.replace(token, token[:-12] + '"' * token.endswith('"')))
    async with opened(kubeconfig, kube_namespace) as api:
        with pytest.raises(ApiError) as refused:
            await api.get(NAMES.config)
        assert refused.value.status == 401
        kubeconfig.write_text(good)
        with pytest.raises(ApiError) as refused:
            await api.get(NAMES.config)
        assert refused.value.status == 403


async def test_a_server_that_is_not_there_is_no_answer(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(NOWHERE)
    async with opened(kubeconfig, "default") as api:
        with pytest.raises(ApiError) as failed:
            await api.get(NAMES.config)
        assert (failed.value.status, failed.value.outage) == (None, True)
