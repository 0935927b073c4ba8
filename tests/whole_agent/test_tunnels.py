"""WebSockets through a whole agent: aiohttp's client, a real listener, aiohttp's server."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from standins.agents import configuration, lender, manifest
from standins.echo_server import echoing
from standins.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from standins.agents import Lender

pytestmark = pytest.mark.component


def connect(lent: Lender, path: str = "/v1/realtime", **kwargs: Any) -> Any:
    headers = {"Authorization": f"Bearer {lent.tokens.borrow}"} | kwargs.pop("headers", {})
    return lent.http.ws_connect(lent.url + path, headers=headers, max_msg_size=64 << 20, **kwargs)


async def status_of(lent: Lender, path: str = "/v1/realtime", **kwargs: Any) -> tuple[int, str]:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await connect(lent, path, **kwargs)
    assert refused.value.headers is not None
    return refused.value.status, refused.value.headers["x-vacancy-reason"]


def break_off(socket: aiohttp.ClientWebSocketResponse) -> None:
    connection = socket._response.connection
    assert connection is not None
    assert connection.transport is not None
    connection.transport.abort()


async def test_messages_of_every_kind_come_back_as_they_were_sent(tmp_path: Path) -> None:
    large = os.urandom(9 << 20)
    async with echoing() as server, lender(tmp_path, manifest(server.url, dialect="comfyui")) as lent:
        async with connect(lent, "/ws?clientId=a", protocols=("other", "chat"), compress=15) as socket:
            assert (socket.protocol, socket.compress) == ("chat", 15)  # agreed between the two ends alone
            for message in ("", "text", "\u20ac" * 70_000):
                await socket.send_str(message)
                assert await socket.receive_str(timeout=20) == message
            for data in (b"", b"\0\xff" * 40_000, large):
                await socket.send_bytes(data)
                assert await socket.receive_bytes(timeout=20) == data
            await socket.ping(b"?")
            await socket.send_str("close")
            message = await socket.receive(timeout=20)
            assert (message.type, message.data, message.extra) == (aiohttp.WSMsgType.CLOSE, 4321, "as told")
        (seen,) = server.seen
        assert seen.path_qs == "/ws?clientId=a"
        assert seen.host == f"127.0.0.1:{server.port}"
        assert "Authorization" not in seen.headers
        await until(lambda: not server.open)
        engine = lent.agent.engine_counters()["up"]
        await until(lambda: engine.tunnels == 0)


async def test_progress_stays_open_while_nothing_is_lent(tmp_path: Path) -> None:
    async with (
        echoing() as server,
        lender(tmp_path, manifest(server.url, dialect="comfyui")) as lent,
        connect(lent, "/ws?clientId=a") as socket,
    ):
        assert (await lent.api("POST", "/admin/pause", {"for": "1h"}))[0] == 200
        await lent.until(lambda up: not up["lendable"])
        async with connect(lent, "/api/ws?clientId=b") as another:
            for one in (socket, another):
                await one.send_str("still here")
                assert await one.receive_str(timeout=10) == "still here"
        _, metrics = await lent.api("GET", "/metrics")
        assert 'vacancy_tunnels{upstream="up"}' in metrics


async def test_work_is_refused_cut_held_and_shown_to_have_ended(tmp_path: Path) -> None:
    async with echoing() as server, lender(tmp_path, manifest(server.url)) as lent:
        await lent.until(lambda up: up["lendable"])
        server.running = 1
        async with connect(lent) as socket:
            await socket.send_str("at work")
            assert await socket.receive_str(timeout=10) == "at work"
            assert await status_of(lent) == (503, "resource_busy")
            assert (await lent.api("POST", "/admin/pause", {"for": "1h"}))[0] == 200
            message = await socket.receive(timeout=10)
            assert message.type in {aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR}
        assert await status_of(lent) == (503, "lending_disabled")
        await until(lambda: not server.open)
        await lent.until(lambda up: (up["active"], up["held"]) == (0, 1))
        assert (await lent.api("POST", "/admin/resume", {}))[0] == 200
        assert await status_of(lent) == (503, "resource_busy")  # nothing has shown yet that it stopped
        server.running = 0
        await lent.until(lambda up: up["held"] == 0, within=20)
        assert lent.counts() == {"cancelled": 1}
        async with connect(lent) as socket:
            await socket.send_str("again")
            assert await socket.receive_str(timeout=10) == "again"


async def test_an_upstream_that_dies_and_a_borrower_who_leaves_take_each_other_along(tmp_path: Path) -> None:
    async with echoing() as server, lender(tmp_path, manifest(server.url, dialect="comfyui")) as lent:
        async with connect(lent, "/ws") as socket:
            await socket.send_str("die")
            assert (await socket.receive(timeout=10)).type in {
                aiohttp.WSMsgType.CLOSED,
                aiohttp.WSMsgType.ERROR,
            }
        async with connect(lent, "/ws") as socket:
            await until(lambda: server.open == 1)
            break_off(socket)
            await until(lambda: not server.open)
        async with connect(lent, "/ws") as socket:
            await socket.send_str("flood")
            await until(lambda: server.open == 1)
            await asyncio.sleep(0.2)  # until every buffer is full
            break_off(socket)
        await until(lambda: not server.open)


async def test_a_listener_that_changes_cuts_its_tunnels_and_the_new_one_takes_others(tmp_path: Path) -> None:
    async with (
        echoing() as server,
        lender(tmp_path, document := manifest(server.url, dialect="comfyui")) as lent,
    ):
        async with connect(lent, "/ws") as socket:
            document["spec"]["limits"] = {"maxTunnels": 1, "tunnelIdleTimeout": "1s"}
            async with asyncio.timeout(20):
                await lent.agent.apply(configuration(tmp_path, document, lent.tokens))
            assert (await socket.receive(timeout=10)).type in {
                aiohttp.WSMsgType.CLOSED,
                aiohttp.WSMsgType.ERROR,
            }
        async with connect(lent, "/ws") as socket:
            assert await status_of(lent, "/ws") == (503, "tunnel_cap")
            assert (await socket.receive(timeout=10)).type is aiohttp.WSMsgType.CLOSED  # silent for a second
        await until(lambda: not server.open)


async def test_a_page_of_another_site_opens_nothing_on_a_trusted_machine(tmp_path: Path) -> None:
    async with echoing() as server:
        document = manifest(server.url, dialect="comfyui")
        document["spec"]["access"]["trustLoopback"] = True
        async with lender(tmp_path, document) as lent:
            url = lent.url + "/ws"
            async with lent.http.ws_connect(url) as socket:  # a program
                await socket.send_str("hello")
            async with lent.http.ws_connect(url, headers={"Origin": lent.url}):  # a page from here
                pass
            for page in ("https://evil.example", "null", "http://localhost"):
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await lent.http.ws_connect(url, headers={"Origin": page})
                assert refused.value.status == 401
            assert len(server.seen) == 2
