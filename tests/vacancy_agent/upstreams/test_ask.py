from __future__ import annotations

import asyncio
import os
import socket
import ssl
from typing import TYPE_CHECKING

import pytest

from standins.certificates import write_certificate
from standins.openai_server import OpenAiStandin
from vacancy_agent.core.settings import Target
from vacancy_agent.upstreams import ask
from vacancy_agent.upstreams.ask import Answer, AskError, ServerClient, open_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

component = pytest.mark.component


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAiStandin]:
    with OpenAiStandin() as running:
        yield running


@pytest.fixture
async def client(server: OpenAiStandin):
    server.behave()
    server.forget()
    async with open_session() as session:
        yield ServerClient(session, Target("http", "127.0.0.1", server.port), "s3cret")


def test_what_is_no_json_is_an_error():
    assert Answer(200, b'{"a": 1}').json() == {"a": 1}
    for body in (b"", b"<html>", b"\xff", b"[" * 100_000):
        with pytest.raises(AskError, match="without JSON"):
            Answer(200, body).json()


@component
async def test_asks_with_its_credential_on_a_connection_of_its_own(
    client: ServerClient, server: OpenAiStandin
):
    assert (await client.get("/v1/models")).json()["data"][0]["id"] == "standin-model"
    assert (await client.get("/nothing")).status == 404
    first, second = server.seen()
    assert dict(map(tuple, first["headers"]))["authorization"] == "Bearer s3cret"
    assert first["connection"] != second["connection"]
    assert server.report()["open"] == 1, "the one that asks for the report"


@component
async def test_the_environments_proxy_is_not_asked(server: OpenAiStandin, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with open_session() as session:
        assert (
            await ServerClient(session, Target("http", "127.0.0.1", server.port)).get("/health")
        ).status == 200


@component
async def test_an_answer_is_bounded_in_size_and_time(
    client: ServerClient, monkeypatch: pytest.MonkeyPatch, server: OpenAiStandin
):
    monkeypatch.setattr(ask, "MAX_ANSWER", 20)
    with pytest.raises(AskError, match="above"):
        await client.get("/v1/models")
    monkeypatch.setattr(ask, "DEADLINE_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with open_session() as session:
            port = silent.getsockname()[1]
            with pytest.raises(AskError, match="no answer to GET /x"):
                await ServerClient(session, Target("http", "127.0.0.1", port)).get("/x")


@component
@pytest.mark.parametrize(
    "answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"]
)
async def test_a_broken_answer_is_an_error(answer: bytes):
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    broken = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with broken, open_session() as session:
        target = Target("http", "127.0.0.1", broken.sockets[0].getsockname()[1])
        with pytest.raises(AskError, match="GET /x"):
            await ServerClient(session, target).get("/x")


@component
async def test_nobody_there_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with open_session() as session:
        with pytest.raises(AskError, match=r"^GET /x: connection refused: is it running\?$"):
            await ServerClient(session, Target("http", "127.0.0.1", port)).get("/x")


@component
async def test_an_answer_is_handed_over_as_it_comes(client: ServerClient, server: OpenAiStandin):
    pieces: list[bytes] = []
    taken = await client.read("/metrics", lambda piece: bool(pieces.append(piece)), most=1 << 20)
    assert taken == 200
    assert b"".join(pieces).startswith(b"# HELP")
    pieces.clear()
    assert await client.read("/nothing", lambda piece: bool(pieces.append(piece)), most=1 << 20) == 404
    assert pieces == [], "only the body of a 200 is read"


@component
async def test_whoever_needs_no_more_reads_no_more(client: ServerClient):
    assert await client.read("/metrics", lambda _: True, most=1 << 20) == 200
    assert await client.read("/metrics", lambda _: True, most=10**6) == 200
    with pytest.raises(AskError, match="above 0 MiB"):
        await client.read("/metrics", lambda _: False, most=10)


@component
async def test_nobody_there_to_read_from():
    async with open_session() as session:
        with pytest.raises(AskError, match="GET /queue"):
            await ServerClient(session, Target("http", "127.0.0.1", 1)).read(
                "/queue", lambda _: False, most=10
            )


@component
async def test_over_tls_it_trusts_whom_the_machine_trusts_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    authority = write_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority, tmp_path / "tls.key")

    async def answers(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    async with (
        await asyncio.start_server(answers, "127.0.0.1", 0, ssl=context) as server,
        open_session() as http,
    ):
        target = Target("https", "127.0.0.1", server.sockets[0].getsockname()[1])
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        ask._trusting.cache_clear()
        assert (await ServerClient(http, target).get("/")).body == b"ok"
        monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
        ask._trusting.cache_clear()
        with pytest.raises(AskError, match="CERTIFICATE_VERIFY_FAILED"):
            await ServerClient(http, target).get("/")
    ask._trusting.cache_clear()
