from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from vacancy_agent.core.settings import Target
from vacancy_agent.upstreams import ollama
from vacancy_agent.upstreams.ask import AskError, NoAnswerError, ServerClient, open_session
from vacancy_agent.upstreams.ollama import OllamaServer

pytestmark = pytest.mark.component
ROW = {"name": "m:latest", "digest": "ab", "expires_at": "x", "size": 2, "size_vram": 1}


@asynccontextmanager
async def answering(status: int, body: bytes, asked: list[bytes] | None = None):
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
        sent = await reader.readexactly(int(length[0].split(b":")[1])) if length else b""
        if asked is not None:
            asked.append(head.split(b"\r\n")[0] + b" " + sent)
        if status:
            writer.write(b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
            await writer.drain()
        else:
            await reader.read()
        writer.close()
        await writer.wait_closed()
        closed.set()

    closed = asyncio.Event()
    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server, open_session() as session:
        target = Target("http", "127.0.0.1", server.sockets[0].getsockname()[1])
        yield OllamaServer(ServerClient(session, target))
        await closed.wait()


async def test_what_it_holds():
    async with answering(200, json.dumps({"models": [ROW]}).encode()) as server:
        (row,) = await server.residents()
    assert (row.name, row.expires_at, row.context_length) == ("m:latest", None, None)


async def test_how_a_model_is_set_up():
    asked: list[bytes] = []
    async with answering(200, json.dumps({"parameters": "num_ctx 2048"}).encode(), asked) as server:
        assert (await server.show("m:latest")).num_ctx == 2048
    assert asked == [b'POST /api/show HTTP/1.1 {"model": "m:latest"}']


@pytest.mark.parametrize(("status", "body"), [(503, b"{}"), (200, b"[]"), (200, b"")])
async def test_no_answer_that_can_be_read_is_an_error_and_not_an_empty_list(status: int, body: bytes):
    async with answering(status, body) as server:
        with pytest.raises(AskError):
            await server.residents()


async def test_a_server_that_takes_too_long_says_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ollama, "PS_WITHIN_S", 0.2)
    async with answering(0, b"") as server:
        with pytest.raises(NoAnswerError, match="/api/ps"):
            await server.residents()
