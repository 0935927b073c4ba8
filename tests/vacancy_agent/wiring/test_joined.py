"""A joined agent whole, against a stand-in API server: it does what the cluster says, and tells it."""

from __future__ import annotations

import asyncio
import json
import stat
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from standins.agents import free_port, manifest
from standins.kube_api import KubeApi, status
from standins.membership import (
    BORROW,
    CONFIGMAPS,
    HOSTS,
    LEASES,
    NAME,
    SECRETS,
    agent_json,
    condition,
    config,
    host,
    member,
    secret,
    serve,
    spec,
)
from standins.openai_server import OpenAiStandin
from standins.until import until
from vacancy_api.agent_config import canonical_json, digest_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

pytestmark = pytest.mark.component


@pytest.fixture
async def api() -> AsyncIterator[KubeApi]:
    async with KubeApi() as server:
        yield server


@pytest.fixture
def lent() -> Iterator[dict[str, Any]]:
    """The spec of a host that lends a stand-in server."""
    with OpenAiStandin() as server:
        yield spec(manifest(server.url))


def port_of(lent: dict[str, Any]) -> int:
    port: int = lent["upstreams"][0]["port"]
    return port


async def asks(port: int, token: str = BORROW) -> int:
    """What a borrower gets: the status, 0 for nobody there."""
    headers = {"Authorization": f"Bearer {token}"}
    body = {"model": "m", "messages": []}
    async with aiohttp.ClientSession() as http:
        try:
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            async with http.post(url, json=body, headers=headers) as answer:
                return answer.status
        except aiohttp.ClientConnectorError:
            return 0


async def lends(api: KubeApi) -> None:
    await until(lambda: condition(api, "Lendable").get("status") == "True")


async def test_a_host_in_the_cluster_lends_and_says_so(api: KubeApi, lent: dict[str, Any], tmp_path: Path):
    serve(api, lent, generation=3)
    async with member(tmp_path, api.url):
        await lends(api)
        assert await asks(port_of(lent)) == 200
        found = api.get(HOSTS, NAME)
        assert found is not None
        agent = found["status"]["agent"]
        assert agent["configDigest"] == json.loads(agent_json_of(api))["digest"]
        assert agent["upstreams"][0]["bound"] is True
        assert agent["resources"][0]["freeMiB"] % 512 == 0
        assert {one["observedGeneration"] for one in found["status"]["conditions"]} == {3}
        assert condition(api, "ConfigApplied")["reason"] == "Applied"
        (beat,) = api.of("PATCH", f"{LEASES}/lh-{NAME}")[:1]
        assert beat.body is not None
        assert beat.body["spec"]["leaseDurationSeconds"] == 40


def agent_json_of(api: KubeApi) -> str:
    found = api.get(CONFIGMAPS, f"lh-{NAME}-config")
    assert found is not None
    text: str = found["data"]["agent.json"]
    return text


async def test_every_write_is_a_server_side_apply_that_is_strict(
    api: KubeApi, lent: dict[str, Any], tmp_path: Path
):
    serve(api, lent)
    async with member(tmp_path, api.url):
        await lends(api)
    writes = [one for one in api.asked if one.method != "GET"]
    assert {one.method for one in writes} == {"PATCH"}
    assert {(one.query["fieldManager"], one.query["fieldValidation"]) for one in writes} == {
        ("vacancy-agent", "Strict")
    }


async def test_without_a_configuration_it_idles_and_is_ready(api: KubeApi, tmp_path: Path):
    host(api, {})
    async with member(tmp_path, api.url) as one:
        await until(lambda: condition(api, "ConfigApplied"))
        assert condition(api, "ConfigApplied")["reason"] == "NoConfiguration"
        await until(lambda: condition(api, "Lendable"))
        assert condition(api, "Lendable")["status"] == "False"
        await until(lambda: one.whole.agent.ready() == [])


async def test_where_there_is_no_lending_host_nothing_is_written_but_the_lease(api: KubeApi, tmp_path: Path):
    async with member(tmp_path, api.url) as one:
        await until(lambda: api.of("PATCH"))
        await asyncio.sleep(1.5)
        assert {asked.path for asked in api.of("PATCH")} == {f"{LEASES}/lh-{NAME}"}
        assert one.whole.agent.ready() == []


async def test_an_edit_of_one_upstream_leaves_the_streams_of_another(api: KubeApi, tmp_path: Path):
    with OpenAiStandin() as server:
        first = spec(manifest(server.url))
        second = {**first["upstreams"][0], "name": "other", "port": free_port()}
        both = {**first, "upstreams": [first["upstreams"][0], second]}
        serve(api, both)
        async with member(tmp_path, api.url) as one:
            await lends(api)
            edited = {**both, "upstreams": [both["upstreams"][0], {**second, "slots": 2}]}
            config(api, agent_json(edited, generation=2))
            await until(lambda: len(one.told_of("configuration applied")) == 2)
            assert [facts["upstream"] for facts in one.told_of("stopped listening")] == ["other"]
            assert await asks(port_of(first)) == 200


@pytest.mark.parametrize("wrong", ["unknown key", "no JSON", "another host", "no key"])
async def test_an_invalid_configuration_changes_nothing_and_is_named(
    api: KubeApi, lent: dict[str, Any], tmp_path: Path, wrong: str
):
    serve(api, lent, generation=1)
    async with member(tmp_path, api.url) as one:
        await lends(api)
        good = agent_json(lent, generation=2)
        text, path = {
            "unknown key": (signed(good, '"slots":1', '"slots":1,"slotss":2'), "spec.upstreams[0].slotss"),
            "no JSON": (good[:-1], "is not valid JSON"),
            "another host": (signed(good, '"name":"box"', '"name":"bux"'), "host: is lending/bux"),
            "no key": ("", "is not valid JSON"),
        }[wrong]
        config(api, text)
        await until(lambda: condition(api, "ConfigApplied").get("status") == "False")
        assert path in condition(api, "ConfigApplied")["message"]
        assert condition(api, "ConfigApplied")["observedGeneration"] == (2 if wrong == "unknown key" else 1)
        assert one.told_of("stopped listening") == []
        assert await asks(port_of(lent)) == 200
        config(api, agent_json(lent, generation=3))
        await until(lambda: condition(api, "ConfigApplied").get("status") == "True")
        assert condition(api, "ConfigApplied")["observedGeneration"] == 3


def signed(text: str, old: str, new: str) -> str:
    """An edit whose digest is right."""
    document = json.loads(text.replace(old, new))
    return canonical_json({**document, "digest": digest_of(document)})


async def test_it_starts_and_lends_while_the_api_server_is_down(
    api: KubeApi, lent: dict[str, Any], tmp_path: Path
):
    serve(api, lent)
    async with member(tmp_path, api.url):
        await lends(api)
    await api.stop()
    async with member(tmp_path, api.url) as one:
        await until(lambda: one.whole.agent.ready() == [])
        assert await asks(port_of(lent)) == 200
        assert len(one.told_of("cluster unreachable")) == 1


async def test_after_an_outage_it_reports_again_and_the_news_of_meanwhile_count(
    api: KubeApi, lent: dict[str, Any], tmp_path: Path
):
    serve(api, lent)
    async with member(tmp_path, api.url) as one:
        await lends(api)
        await api.stop()
        await until(lambda: one.told_of("cluster unreachable"))
        assert await asks(port_of(lent)) == 200
        serve(api, {**lent, "lending": False}, generation=2)
        await api.start()
        await until(lambda: condition(api, "Lendable").get("reason") == "LendingDisabled", within=30.0)
        assert one.told_of("cluster reached again")
        assert await asks(port_of(lent)) == 503


async def test_a_network_that_swallows_everything_is_noticed_and_its_end_too(
    api: KubeApi, lent: dict[str, Any], tmp_path: Path
):
    serve(api, lent)
    async with member(tmp_path, api.url) as one:
        await lends(api)
        api.hanging = True
        await until(lambda: one.told_of("cluster unreachable"), within=30.0)
        assert await asks(port_of(lent)) == 200
        api.hanging = False
        serve(api, {**lent, "lending": False}, generation=2)
        await until(lambda: condition(api, "Lendable").get("reason") == "LendingDisabled", within=30.0)


async def test_a_lending_host_that_is_deleted_is_lent_no_more_not_even_after_a_restart(
    api: KubeApi, lent: dict[str, Any], tmp_path: Path
):
    serve(api, lent)
    async with member(tmp_path, api.url) as one:
        await lends(api)
        api.delete(HOSTS, NAME)
        await until(lambda: one.told_of("idle"))
        assert await asks(port_of(lent)) == 0
    await api.stop()
    async with member(tmp_path, api.url) as one:
        assert one.whole.joined.document is None


async def test_a_host_that_was_deleted_and_made_anew_waits_for_its_own_configuration(
    api: KubeApi, lent: dict[str, Any], tmp_path: Path
):
    serve(api, lent)
    async with member(tmp_path, api.url):
        await lends(api)
        api.delete(HOSTS, NAME)
        host(api, lent)
        await until(lambda: condition(api, "ConfigApplied").get("reason") == "NoConfiguration")
        assert await asks(port_of(lent)) == 0
        serve(api, lent)
        await lends(api)


async def test_a_config_map_that_is_deleted_alone_ends_nothing(
    api: KubeApi, lent: dict[str, Any], tmp_path: Path
):
    serve(api, lent)
    async with member(tmp_path, api.url) as one:
        await lends(api)
        api.delete(CONFIGMAPS, f"lh-{NAME}-config")
        await asyncio.sleep(0.5)
        assert one.told_of("idle") == []
        assert await asks(port_of(lent)) == 200


async def test_a_credential_comes_from_its_secret_and_is_kept_for_itself(
    api: KubeApi, lent: dict[str, Any], tmp_path: Path
):
    lent["upstreams"][0]["credentialSecretRef"] = {"name": "key", "key": "token"}
    serve(api, lent)
    async with member(tmp_path, api.url):
        await until(lambda: "Secret lending/key" in condition(api, "ConfigApplied").get("message", ""))
        assert "spec.upstreams[0].credentialSecretRef" in condition(api, "ConfigApplied")["message"]
        secret(api, "key", token="sesame")
        serve(api, lent, generation=2)
        await lends(api)
    copy = tmp_path / "state" / "secrets" / "key" / "token"
    assert copy.read_text() == "sesame"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    await api.stop()
    async with member(tmp_path, api.url):
        assert await asks(port_of(lent)) == 200


async def test_a_secret_that_is_no_longer_referred_to_is_forgotten(
    api: KubeApi, lent: dict[str, Any], tmp_path: Path
):
    without = json.loads(json.dumps(lent))
    lent["upstreams"][0]["credentialSecretRef"] = {"name": "key", "key": "token"}
    secret(api, "key", token="sesame")
    serve(api, lent)
    async with member(tmp_path, api.url) as one:
        await lends(api)
        serve(api, without, generation=2)
        await until(lambda: len(one.told_of("configuration applied")) == 2)
        await until(lambda: not (tmp_path / "state" / "secrets" / "key").exists())


async def test_a_token_that_is_renewed_in_its_file_is_used(
    api: KubeApi, lent: dict[str, Any], tmp_path: Path
):
    serve(api, lent)
    async with member(tmp_path, api.url) as one:
        await lends(api)
        api.token = "renewed"
        await until(lambda: one.told_of("cluster unreachable"), within=30.0)
        (tmp_path / "join" / "token").write_text("renewed\n")
        await until(lambda: one.told_of("cluster reached again"), within=30.0)
        assert len(one.told_of("cluster unreachable")) == 1


async def test_a_config_map_that_may_not_be_read_is_named(api: KubeApi, lent: dict[str, Any], tmp_path: Path):
    serve(api, lent)
    api.refuse = lambda asked: status(403, "configmaps is forbidden") if "configmaps" in asked.path else None
    async with member(tmp_path, api.url) as one:
        await until(lambda: condition(api, "ConfigApplied").get("reason") == "Unreadable")
        assert "configmaps is forbidden" in condition(api, "ConfigApplied")["message"]
        api.refuse = lambda _asked: None
        await lends(api)
        assert len([1 for facts in one.told_of("cluster refuses") if "ConfigMap" in str(facts["what"])]) == 1


async def test_what_the_operator_writes_over_a_lost_agent_is_put_right(
    api: KubeApi, lent: dict[str, Any], tmp_path: Path
):
    serve(api, lent)
    async with member(tmp_path, api.url):
        await lends(api)
        await asyncio.sleep(10.5)  # the agent answers one writer once in ten seconds
        found = api.get(HOSTS, NAME)
        assert found is not None
        for found_condition in found["status"]["conditions"]:
            if found_condition["type"] == "Lendable":
                found_condition.update(status="Unknown", reason="AgentLost")
        api.put(HOSTS, found)
        assert condition(api, "Lendable")["status"] == "Unknown"
        await lends(api)


async def test_the_owner_can_pause_here_whatever_the_cluster_says(
    api: KubeApi, lent: dict[str, Any], tmp_path: Path
):
    serve(api, lent)
    async with member(tmp_path, api.url):
        await lends(api)
        tokens = json.loads((tmp_path / "state" / "tokens.json").read_text())
        url = f"http://127.0.0.1:{lent['access']['apiPort']}/admin/pause"
        headers = {"Authorization": f"Bearer {tokens['admin']}"}
        async with aiohttp.ClientSession() as http, http.post(url, json={}, headers=headers) as answer:
            assert answer.status == 200
        await until(lambda: condition(api, "Lendable").get("reason") == "LendingDisabled")
        assert await asks(port_of(lent), tokens["borrow"]) == 401


async def test_secrets_and_nobody_are_in_the_status(api: KubeApi, lent: dict[str, Any], tmp_path: Path):
    serve(api, lent)
    async with member(tmp_path, api.url):
        await lends(api)
    written = json.dumps([one.body for one in api.of("PATCH")])
    assert "sha256" not in written
    assert "owner" not in json.loads(written)[0]
    assert SECRETS  # no test of this file reads one of them without a reference
