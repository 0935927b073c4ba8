"""Calls to the API server: what goes over the wire, and what comes back as a fault."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from standins.kube_api import KubeApi, status
from standins.membership import CONFIGMAPS, HOSTS, NAME, host, identity
from vacancy_agent.clock import SystemClock
from vacancy_agent.cluster.api import ClusterApi
from vacancy_agent.cluster.fault import ApiError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.component


@pytest.fixture
async def server() -> AsyncIterator[KubeApi]:
    async with KubeApi() as running:
        yield running


@pytest.fixture
async def api(server: KubeApi, tmp_path: Path) -> AsyncIterator[ClusterApi]:
    made = ClusterApi(identity(tmp_path, server.url), SystemClock())
    yield made
    await made.close()


async def test_an_apply_owns_what_it_writes_and_refuses_unknown_fields(server: KubeApi, api: ClusterApi):
    host(server, {})
    await api.apply(f"{HOSTS}/{NAME}/status", {"status": {"agent": {"version": "1"}}})
    (asked,) = server.of("PATCH")
    assert asked.query == {"fieldManager": "vacancy-agent", "force": "true", "fieldValidation": "Strict"}
    assert asked.body == {"status": {"agent": {"version": "1"}}}


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 410, 422, 429, 500, 503])
async def test_a_refusal_is_a_fault_with_the_servers_words(server: KubeApi, api: ClusterApi, code: int):
    server.refuse = lambda _: status(code, "for a reason", Retry_After="3")
    with pytest.raises(ApiError) as caught:
        await api.get(CONFIGMAPS)
    assert (caught.value.status, caught.value.why, caught.value.retry_after) == (code, "for a reason", 3.0)


async def test_nobody_there_is_a_fault(server: KubeApi, api: ClusterApi):
    await server.stop()
    with pytest.raises(ApiError) as caught:
        await api.get(CONFIGMAPS)
    assert caught.value.outage


async def test_what_is_no_document_is_a_fault(server: KubeApi, api: ClusterApi):
    from aiohttp import web

    server.refuse = lambda _: web.Response(text="<html>a proxy's login page</html>")
    with pytest.raises(ApiError):
        await api.get(CONFIGMAPS)


async def test_a_token_that_is_gone_is_a_fault(server: KubeApi, api: ClusterApi, tmp_path: Path):
    (tmp_path / "token").unlink()
    with pytest.raises(ApiError, match="token"):
        await api.get(CONFIGMAPS)


async def test_a_watch_yields_what_comes_after_its_version(server: KubeApi, api: ClusterApi):
    first = host(server, {})
    query = {
        "fieldSelector": f"metadata.name={NAME}",
        "resourceVersion": first["metadata"]["resourceVersion"],
    }
    host(server, {"lending": False}, generation=2)
    async with aclosing(api.watch(HOSTS, query)) as events:
        event: dict[str, Any] = await anext(events)
    assert (event["type"], event["object"]["metadata"]["generation"]) == ("MODIFIED", 2)
    assert float(server.asked[-1].query["timeoutSeconds"]) <= 60


async def test_an_error_event_is_a_fault(server: KubeApi, api: ClusterApi):
    host(server, {})
    server.compact()
    with pytest.raises(ApiError) as caught:
        async for _ in api.watch(HOSTS, {"resourceVersion": "1"}):
            pass
    assert caught.value.status == 410


async def test_the_difference_of_the_clocks_comes_from_any_answer(server: KubeApi, api: ClusterApi):
    assert api.skew is None
    await api.get(CONFIGMAPS)
    assert api.skew == 0.0
    server.headers = {"Date": "Sun, 01 Mar 2020 12:00:00 GMT"}
    await api.get(CONFIGMAPS)
    assert api.skew is not None
    assert api.skew > 1e6
