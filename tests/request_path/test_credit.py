"""Credit in the path of a request: one look where only age refuses, and no wait for a sample after a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.hosts import host, resource, upstream
from standins.http_text import answer, reply, request
from standins.lending_rig import BORROW, Pause
from vacancy_agent.core.facts import Instant, MiB, Ready
from vacancy_agent.core.settings import Dialect, Footprint, ResourceType
from vacancy_agent.core.shown import ModelShown, ModelsShown
from vacancy_agent.proxy.models import Models

if TYPE_CHECKING:
    from collections.abc import Callable

    from standins.http_engine import Client
    from standins.http_text import Answer
    from standins.lending_rig import LendingRig
    from vacancy_agent.core.facts import Seconds

PATH = "/api/generate"
BODY = {"model": "m", "prompt": "x", "options": {"num_ctx": 2048}}
SETTINGS = host(
    [upstream("up", ("gpu",), dialect=Dialect.OLLAMA, default_footprint=Footprint(MiB(9_000), MiB(300)))],
    resources=[resource("gpu", ResourceType.NVIDIA)],
)


class Looks:
    """The observation of the upstream: it shows this once the test lets it."""

    def __init__(self, rig: LendingRig) -> None:
        self.rig = rig
        self.asked = 0
        self.soons = 0
        self.shown = ModelsShown((ModelShown("m:latest", "d", 2048, Instant(10_000), 1, 1),))
        self._pauses: list[Pause] = []

    def soon(self) -> None:
        self.soons += 1

    async def fresh(self, within: Seconds) -> None:
        assert within == 1
        self.asked += 1
        pause = Pause()
        self._pauses.append(pause)
        await pause

    def come(self) -> None:
        self.rig.host.board.set_residency("up", Ready(self.shown, self.rig.clock.now()))
        self.give_up()

    def give_up(self) -> None:
        for pause in self._pauses:
            pause.over = True
        self.rig.tasks.go_on()


@pytest.fixture
def rig(lending: Callable[..., LendingRig]) -> LendingRig:
    made = lending(SETTINGS)
    made.samples.free["gpu"] = 1_000
    made.samples.take()
    return made


@pytest.fixture
def looks(rig: LendingRig) -> Looks:
    looks = Looks(rig)
    rig.port.app.models = Models("up", Dialect.OLLAMA, rig.host.board, looks, rig.tell)
    return looks


def order(rig: LendingRig, body: object = BODY) -> Client:
    return rig.port.connect(request(PATH, body, token=BORROW))


def refused(client: Client) -> Answer:
    return answer(client.got())


class TestTheOneLook:
    def test_turns_a_refusal_that_only_its_age_caused(self, rig: LendingRig, looks: Looks) -> None:
        client = order(rig)
        assert (client.got(), looks.asked) == (b"", 1)
        looks.come()
        assert rig.port.link().got()
        (told,) = rig.told_of("credited")
        assert (told["model"], told["charged"]) == ("m:latest", 300)
        rig.port.link().send(reply())

    def test_is_not_taken_twice(self, rig: LendingRig, looks: Looks) -> None:
        client = order(rig)
        looks.give_up()
        got = refused(client)
        assert (got.reason, looks.asked) == ("insufficient_capacity", 1)
        assert b"none: not observed yet" in got.body

    def test_is_not_taken_where_nothing_it_shows_could_help(self, rig: LendingRig, looks: Looks) -> None:
        body = {**BODY, "options": {"num_ctx": 2048, "num_thread": 1}}
        assert b"besides num_ctx" in refused(order(rig, body)).body
        assert looks.asked == 0

    def test_that_comes_for_a_client_that_left_is_nobodys(self, rig: LendingRig, looks: Looks) -> None:
        client = order(rig)
        client.hang_up()
        looks.come()
        assert not rig.port.upstream.links
        assert rig.host.requests == {}


def test_the_wait_for_a_sample_falls_away_for_the_same_model_proved_resident(
    rig: LendingRig, looks: Looks
) -> None:
    rig.samples.free["gpu"] = 20_000
    rig.samples.take()
    order(rig)
    rig.port.link().send(reply())
    assert rig.host.board.unread == {"gpu"}
    assert looks.soons == 1
    looks.come()
    order(rig)
    assert rig.host.requests, "no sample was waited for"
    rig.port.link().send(reply())
    looks.come()
    other = order(rig, {**BODY, "options": {"num_ctx": 4096}})
    assert other.got() == b""
    assert not rig.host.requests, "one that is not credited waits"
    rig.samples.take()
    assert rig.host.requests
    rig.port.link().send(reply())


def test_what_a_model_took_is_asked_for_the_next_time(rig: LendingRig, looks: Looks) -> None:
    looks.shown = ModelsShown()
    rig.samples.free["gpu"] = 20_000
    rig.samples.take()
    order(rig)
    rig.port.link().send(reply())
    looks.come()
    rig.samples.free["gpu"] = 9_500
    rig.samples.take()
    got = refused(order(rig))
    assert b'"needMiB":10500' in got.body.replace(b" ", b"")
    assert rig.host.board.priors.of(rig.port.app.models._key("m:latest", None)) is None, (
        "of that context only"
    )
