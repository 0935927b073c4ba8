"""Which configuration runs: the decision's table, without a network."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from standins.agents import manifest
from standins.membership import agent_json, identity, spec
from vacancy_agent.cluster.fault import ApiError
from vacancy_agent.cluster.feed import Feed
from vacancy_agent.cluster.secret_copies import Fetched
from vacancy_agent.store.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from vacancy_api.agent_config import AgentConfig

SPEC = spec(manifest("http://127.0.0.1:9"))


class Runner:
    def __init__(self) -> None:
        self.document: AgentConfig | None = None
        self.did: list[Any] = []
        self.errors: list[str] = []

    async def run_by(self, document: AgentConfig, text: str) -> list[str]:
        if not self.errors:
            self.document = document
            self.did.append(("run", document.host.generation))
        return self.errors

    async def idle(self, why: str) -> None:
        self.document = None
        self.did.append(("idle", why))

    def refuse(self, errors: list[str]) -> None:
        self.did.append(("refuse", errors))

    def unreadable(self, why: str) -> None:
        self.did.append(("unreadable", why))


class Secrets:
    def __init__(self) -> None:
        self.fetched: Fetched | Exception = Fetched()
        self.renewed = False

    async def fetch(self, document: AgentConfig) -> Fetched:
        if isinstance(self.fetched, Exception):
            raise self.fetched
        return self.fetched

    async def keep(self, fetched: Fetched) -> bool:
        return self.renewed

    async def drop(self, names: set[str]) -> None:
        pass


class Rig:
    def __init__(self, tmp_path: Path) -> None:
        self.runner, self.secrets = Runner(), Secrets()
        secrets: Any = self.secrets
        self.feed = Feed(identity(tmp_path, "https://192.0.2.1"), secrets, self.runner)

    async def config(self, uid: str = "a", generation: int = 1, *, text: str | None = None) -> None:
        text = agent_json(SPEC, uid=uid, generation=generation) if text is None else text
        await self.feed.config_seen({"data": {"agent.json": text}})

    async def host(self, uid: str = "a", **metadata: Any) -> None:
        await self.feed.host_seen({"metadata": {"uid": uid, "generation": 1, **metadata}})

    @property
    def last(self) -> Any:
        return self.runner.did[-1] if self.runner.did else None


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


async def test_a_configuration_runs_once(rig: Rig):
    await rig.host()
    await rig.config()
    await rig.config()
    await rig.host()
    assert rig.runner.did == [("run", 1)]
    assert rig.feed.judged == 1


async def test_the_order_in_which_both_are_seen_does_not_matter(rig: Rig):
    await rig.config()
    await rig.host()
    assert rig.runner.did == [("run", 1)]


async def test_1_a_deleted_host_idles_and_its_leftover_configuration_does_not_start_it_again(rig: Rig):
    await rig.host()
    await rig.config()
    await rig.feed.host_seen(None)
    assert rig.last == ("idle", "the LendingHost is gone")
    await rig.config(generation=2)
    assert rig.last == ("idle", "the LendingHost is gone")


async def test_1_a_host_that_is_being_deleted_is_gone(rig: Rig):
    await rig.host()
    await rig.config()
    await rig.host(deletionTimestamp="2026-03-01T12:00:00Z")
    assert rig.last == ("idle", "the LendingHost is gone")


async def test_2_a_missing_config_map_ends_nothing(rig: Rig):
    await rig.host()
    await rig.config()
    await rig.feed.config_seen(None)
    assert rig.last == ("run", 1)


async def test_3_what_is_wrong_is_refused_and_named_with_its_generation(rig: Rig):
    await rig.host()
    await rig.config()
    text = agent_json(SPEC, uid="a", generation=2).replace('"slots":1', '"slots":0')
    await rig.config(text=text)
    assert rig.last[0] == "refuse"
    assert rig.feed.judged == 2
    assert rig.runner.document is not None
    assert rig.runner.document.host.generation == 1


async def test_3_going_back_to_what_runs_takes_the_refusal_back(rig: Rig):
    await rig.host()
    await rig.config()
    await rig.config(text="{}")
    await rig.config()
    assert rig.last == ("run", 1)


@pytest.mark.parametrize("found", [{}, {"data": {}}, {"data": None}, {"data": {"agent.json": "[]"}}])
async def test_3_a_config_map_without_a_configuration(rig: Rig, found: dict[str, Any]):
    await rig.feed.config_seen(found)
    assert rig.last[0] == "refuse"


async def test_4_a_leftover_of_an_earlier_host_waits(rig: Rig):
    await rig.host("a")
    await rig.config("a")
    await rig.host("b")
    assert rig.last == ("idle", "the LendingHost is another one now")
    await rig.config("a", 2)
    assert rig.last[0] == "idle"
    await rig.config("b")
    assert rig.last == ("run", 1)


async def test_5_a_missing_secret_is_named(rig: Rig):
    await rig.host()
    rig.secrets.fetched = Fetched(errors=["spec.x: Secret"])
    await rig.config()
    assert rig.last == ("refuse", ["spec.x: Secret"])
    rig.secrets.fetched = Fetched()
    await rig.config()
    assert rig.last == ("run", 1)


@pytest.mark.looptime
async def test_5_a_secret_that_comes_is_noticed_without_a_word(tmp_path: Path):
    rig = Rig(tmp_path)
    running = asyncio.get_running_loop().create_task(rig.feed.run())
    rig.secrets.fetched = Fetched(errors=["spec.x: Secret"])
    await rig.config()
    await asyncio.sleep(300.0)
    assert 10 <= len(rig.runner.did) <= 35
    rig.secrets.fetched = Fetched()
    await asyncio.sleep(30.0)
    assert rig.last == ("run", 1)
    looked = len(rig.runner.did)
    await asyncio.sleep(300.0)
    assert len(rig.runner.did) == looked
    running.cancel()


async def test_5_a_disk_that_takes_no_secret_is_named(rig: Rig):
    rig.secrets.fetched = StoreError("no space")
    await rig.config()
    assert rig.last == ("refuse", ["no space"])


async def test_5_an_outage_between_configuration_and_secret_decides_nothing(rig: Rig):
    rig.secrets.fetched = ApiError(None, "gone")
    with pytest.raises(ApiError):
        await rig.config()
    assert rig.runner.did == []
    rig.secrets.fetched = Fetched()
    await rig.config()
    assert rig.last == ("run", 1)


async def test_6_a_renewed_secret_is_run_by_again(rig: Rig):
    await rig.config()
    rig.secrets.renewed = True
    await rig.config()
    assert rig.runner.did == [("run", 1), ("run", 1)]


async def test_what_the_runner_cannot_do_is_named_and_tried_again(rig: Rig):
    rig.runner.errors = ["spec.upstreams[0].dialect: not served"]
    await rig.config()
    assert rig.last == ("refuse", rig.runner.errors)
    assert not rig.feed.applying
    rig.runner.errors = []
    await rig.config()
    assert rig.last == ("run", 1)


async def test_a_refusal_to_read_is_named_an_outage_is_not(rig: Rig):
    rig.feed.config_failed(ApiError(None, "gone"))
    rig.feed.config_failed(ApiError(401, "who are you"))
    assert rig.runner.did == []
    rig.feed.config_failed(ApiError(403, "not you"))
    assert rig.last == ("unreadable", "ConfigMap lh-box-config cannot be read: 403 not you")
