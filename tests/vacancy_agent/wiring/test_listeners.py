"""The proxies' listeners: what changed restarts, what did not goes on, what cannot be had is named."""

from __future__ import annotations

import asyncio
import copy
import errno
import socket
import ssl
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from standins.agents import configuration, free_port, lender, manifest
from standins.certificates import write_certificate
from vacancy_agent.core.settings import Limits
from vacancy_agent.wiring.listeners import cannot_listen, engine_limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from standins.agents import Lender
    from standins.openai_server import OpenAiStandin
    from vacancy_agent.wiring.listeners import Listeners

SLOW = {"chunks": 10_000, "every_s": 0.02}


def two_upstreams(target: str) -> dict[str, Any]:
    """`up` and `aside`, each on memory of its own."""
    document = manifest(target, spec_resources=[{"name": n, "type": "memory"} for n in ("ram", "more")])
    first = document["spec"]["upstreams"][0]
    document["spec"]["upstreams"].append({**first, "name": "aside", "port": free_port(), "resource": "more"})
    return document


class Rig:
    """A whole agent, whose listeners are given configurations."""

    def __init__(self, folder: Path, lent: Lender, document: dict[str, Any]) -> None:
        self.folder = folder
        self.lent = lent
        self.document = copy.deepcopy(document)

    @property
    def listeners(self) -> Listeners:
        return self.lent.agent.listeners

    async def apply(self) -> list[str]:
        return await self.listeners.apply(configuration(self.folder, self.document, self.lent.tokens))

    def upstream(self, index: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = self.document["spec"]["upstreams"][index]
        return found

    async def answers(self, index: int = 0, trusted: Path | None = None) -> int | None:
        """Status of a request to this upstream's proxy; None: nobody listens (as expected)."""
        context: Any = ssl.create_default_context(cafile=str(trusted)) if trusted else False
        port = self.upstream(index)["port"]
        url = f"{'https' if trusted else 'http'}://127.0.0.1:{port}/v1/models"
        headers = {"Authorization": f"Bearer {self.lent.tokens.borrow}"}
        try:
            async with self.lent.http.get(url, headers=headers, ssl=context) as answer:
                return answer.status
        except aiohttp.ClientError:
            return None

    def restarted(self) -> list[str]:
        """Upstreams whose listener was stopped since the start."""
        return [facts["upstream"] for event, facts in self.lent.told if event == "stopped listening"]  # type: ignore[misc]


@asynccontextmanager
async def rig(folder: Path, document: dict[str, Any]) -> AsyncIterator[Rig]:
    async with lender(folder, document) as lent:
        yield Rig(folder, lent, document)


@asynccontextmanager
async def streaming(it: Rig) -> AsyncIterator[aiohttp.StreamReader]:
    """A stream through `up` that has begun."""
    await it.lent.until(lambda up: up["lendable"])
    async with it.lent.chat(stream=True, standin=SLOW) as reply:
        assert reply.status == 200
        await reply.content.readany()
        yield reply.content


@pytest.mark.component
async def test_an_edit_of_one_upstream_restarts_that_listener_only(standin: OpenAiStandin, tmp_path: Path):
    async with rig(tmp_path, two_upstreams(standin.url)) as it, streaming(it) as stream:
        it.upstream(1)["port"] = free_port()
        assert await it.apply() == []
        assert it.restarted() == ["aside"]
        assert await it.answers(1) == 200
        for _ in range(5):
            assert await stream.readany(), "the stream on the other goes on"


@pytest.mark.component
@pytest.mark.parametrize(
    "change",
    [
        {"trustLoopback": True},
        {"allowUnauthenticatedRemote": True},
        {"apiPort": 9999},
    ],
)
async def test_what_no_listener_is_made_of_restarts_none(
    standin: OpenAiStandin, tmp_path: Path, change: dict[str, Any]
):
    async with rig(tmp_path, manifest(standin.url)) as it, streaming(it) as stream:
        it.document["spec"]["access"] |= change
        it.document["spec"]["resources"].append({"name": "cpu", "type": "cpu"})
        it.document["spec"]["owner"]["releaseAfter"] = "9m"
        assert await it.apply() == []
        assert it.restarted() == []
        assert await stream.readany()


@pytest.mark.component
async def test_the_listener_that_restarts_gives_its_stream_a_second(standin: OpenAiStandin, tmp_path: Path):
    async with rig(tmp_path, manifest(standin.url)) as it, streaming(it) as stream:
        it.upstream()["slots"] = 2
        assert await it.apply() == []
        with pytest.raises(aiohttp.ClientError):
            await stream.read()
        assert it.restarted() == ["up"]
        assert it.lent.counts() == {"cancelled": 1}


@pytest.mark.component
async def test_several_that_stop_share_one_grace(standin: OpenAiStandin, tmp_path: Path):
    names = [f"n{number}" for number in range(4)]
    document = manifest(standin.url, spec_resources=[{"name": name, "type": "memory"} for name in names])
    (first,) = document["spec"]["upstreams"]
    document["spec"]["upstreams"] = [
        {**first, "name": name, "resource": name, "port": free_port()} for name in names
    ]
    async with rig(tmp_path, document) as it, AsyncExitStack() as streams:
        await it.lent.until(lambda up: up["lendable"])
        body = {"model": "m", "messages": [], "stream": True, "standin": SLOW}
        headers = {"Authorization": f"Bearer {it.lent.tokens.borrow}"}
        for upstream in document["spec"]["upstreams"]:
            url = f"http://127.0.0.1:{upstream['port']}/v1/chat/completions"
            reply = await streams.enter_async_context(it.lent.http.post(url, json=body, headers=headers))
            assert reply.status == 200
        loop = asyncio.get_running_loop()
        began = loop.time()
        await it.listeners.close()
        assert 0.9 < loop.time() - began < 3.0
        assert await it.apply() == [], "closed is closed"
        assert await it.answers() is None


@pytest.mark.component
async def test_a_taken_port_is_named_with_its_field_and_the_others_run(
    standin: OpenAiStandin, tmp_path: Path
):
    document = two_upstreams(standin.url)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = document["spec"]["upstreams"][1]["port"] = taken.getsockname()[1]
        async with rig(tmp_path, document) as it:
            assert await it.apply() == [
                f"spec.upstreams[1].port: aside cannot listen on 127.0.0.1:{port}:"
                " another program listens there"
            ]
            assert (it.listeners.bound("up"), it.listeners.bound("aside")) == (True, False)
            assert await it.answers(0) == 200
            taken.close()
            assert await it.apply() == []
            assert it.listeners.bound("aside")
            assert await it.answers(1) == 200


@pytest.mark.component
async def test_an_upstream_that_is_taken_out_stops_listening(standin: OpenAiStandin, tmp_path: Path):
    async with rig(tmp_path, two_upstreams(standin.url)) as it:
        gone = it.document["spec"]["upstreams"].pop()
        assert await it.apply() == []
        assert not it.listeners.bound("aside")
        it.document["spec"]["upstreams"].append(gone)
        assert await it.answers(1) is None
        assert await it.apply() == []
        assert await it.answers(1) == 200


@pytest.mark.component
async def test_tls_on_the_listener_with_a_certificate_that_is_renewed(standin: OpenAiStandin, tmp_path: Path):
    folder = tmp_path / "state" / "secrets" / "cert"
    (tmp_path / "first.crt").write_bytes(write_certificate(folder).read_bytes())
    document = manifest(standin.url)
    document["spec"]["access"]["tls"] = {"secretRef": {"name": "cert"}}
    async with rig(tmp_path, document) as it:
        assert await it.answers(trusted=tmp_path / "first.crt") == 200
        assert await it.answers() is None, "plain HTTP gets no answer"
        assert await it.apply() == []
        assert it.restarted() == []
        renewed = write_certificate(folder)
        assert await it.apply() == []
        assert it.restarted() == ["up"]
        assert await it.answers(trusted=renewed) == 200
        assert await it.answers(trusted=tmp_path / "first.crt") is None


@pytest.mark.component
async def test_secrets_that_went_away_stop_nothing_that_runs(standin: OpenAiStandin, tmp_path: Path):
    folder = tmp_path / "state" / "secrets" / "cert"
    trusted = write_certificate(folder)
    document = manifest(standin.url)
    document["spec"]["access"]["tls"] = {"secretRef": {"name": "cert"}}
    async with rig(tmp_path, document) as it:
        trusted.rename(tmp_path / "kept.crt")
        (error,) = await it.apply()
        assert str(trusted) in error
        assert it.restarted() == []
        assert await it.answers(trusted=tmp_path / "kept.crt") == 200


@pytest.mark.component
async def test_a_new_credential_reaches_the_server_after_a_restart_of_that_listener(
    standin: OpenAiStandin, tmp_path: Path
):
    secret = tmp_path / "state" / "secrets" / "key" / "token"
    secret.parent.mkdir(parents=True)
    secret.write_text("first\n")
    document = manifest(standin.url, credentialSecretRef={"name": "key", "key": "token"})
    async with rig(tmp_path, document) as it:
        for expected in ("first", "second"):
            secret.write_text(expected)
            assert await it.apply() == []
            standin.forget()
            assert await it.answers() == 200
            (sent,) = [request for request in standin.seen() if request["target"] == "/v1/models"]
            assert dict(sent["headers"])["authorization"] == f"Bearer {expected}"
        assert it.restarted() == ["up"]
        assert "second" not in repr(it.listeners._running["up"].shape)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.EADDRINUSE, "x"), "spec.p: up cannot listen on ::1:80: another program listens there"),
        (OSError(errno.EACCES, "x"), "spec.p: up cannot listen on ::1:80: not permitted to this user"),
        (OSError(errno.EADDRNOTAVAIL, "no such"), "spec.access.listen: up cannot listen on ::1:80: no such"),
        (socket.gaierror(-2, "not known"), "spec.access.listen: up cannot listen on ::1:80: not known"),
        (OSError("odd"), "spec.p: up cannot listen on ::1:80: odd"),
    ],
)
def test_why_a_socket_cannot_be_had_begins_with_the_field_to_change(error: OSError, told: str):
    assert cannot_listen(error, "spec.p", "up", "::1", 80) == told


def test_every_limit_of_the_contract_reaches_the_engine():
    limits = Limits()
    found = engine_limits(limits)
    assert (found.header_read_s, found.body_read_s, found.body_idle_s) == (10.0, 120.0, 20.0)
    assert (found.write_stall_s, found.keep_alive_s) == (60.0, 75.0)
    assert (found.max_connections, found.max_body_bytes) == (256, 64 << 20)


async def test_after_a_sleep_no_request_goes_out_on_a_connection_from_before(
    standin: OpenAiStandin, tmp_path: Path
) -> None:
    async with rig(tmp_path / "agent", manifest(standin.url)) as it:
        assert await it.answers() == 200
        (running,) = it.listeners._running.values()
        assert running.upstream.idle_count == 1
        it.lent.agent.readings.resumed(it.lent.agent.host.clock.now())
        assert running.upstream.idle_count == 0
        assert await it.answers() == 200
