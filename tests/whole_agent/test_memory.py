"""The agent's memory and its other streams, beside bodies and replies that are as large as they may be."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from standins.agent_process import AgentProcess
from standins.agents import free_port, manifest
from standins.http_text import CHAT, request
from standins.openai_server import OpenAiStandin

pytestmark = pytest.mark.component

MIB = 1 << 20
BODY_MIB, CLIENTS, BUDGET_MIB, MARGIN_MIB = 64, 64, 256, 80


def peak_mib(pid: int) -> float:
    """The most memory the process ever had resident, pages of mapped bodies included."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def now_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def send(port: int, raw: bytes) -> bytes:
    """One request on a connection of its own, from a thread of its own; the head of its answer.

    The refusal of a body may come while it is still being sent: whoever sends on gets it in the end.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall(raw)
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(65536)
            assert piece, "the connection ended without an answer"
            head += piece
    return head


def large(agent: AgentProcess, content: str) -> bytes:
    """A chat request of just under 64 MiB."""
    body = f'{{"model":"m","messages":[{{"role":"user","content":{content}}}]}}'.encode()
    assert (BODY_MIB - 1) * MIB < len(body) <= BODY_MIB * MIB
    return request(CHAT, body, token=agent.tokens["borrow"])


def test_many_large_bodies_stay_within_the_budget(standin: OpenAiStandin, tmp_path: Path):
    document = manifest(standin.url, slots=CLIENTS)
    port = document["spec"]["upstreams"][0]["port"]
    with AgentProcess(tmp_path / "agent", document) as agent:
        agent.lends()
        raw = large(agent, json.dumps("x" * (BODY_MIB * MIB - 1000)))
        with ThreadPoolExecutor(CLIENTS) as clients:
            heads = list(clients.map(lambda _: send(port, raw), range(CLIENTS)))
        peak = peak_mib(agent.process.pid)
    served = [head for head in heads if head.startswith(b"HTTP/1.1 200 ")]
    refused = [head for head in heads if head.startswith(b"HTTP/1.1 503 ")]
    assert len(served) >= BUDGET_MIB // BODY_MIB
    assert len(served) + len(refused) == CLIENTS, "everybody has a readable answer"
    assert all(b"x-vacancy-reason: buffer_budget" in head and b"retry-after: " in head for head in refused)
    assert peak < BUDGET_MIB + MARGIN_MIB


async def test_a_gibibyte_of_reply_leaves_no_trace_in_memory(standin: OpenAiStandin, tmp_path: Path):
    document = manifest(standin.url)
    port = document["spec"]["upstreams"][0]["port"]
    with AgentProcess(tmp_path / "agent", document) as agent:
        agent.lends()
        before = now_mib(agent.process.pid)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        ask = {"model": "m", "messages": [], "standin": {"bytes": 1 << 30}}
        writer.write(request(CHAT, ask, token=agent.tokens["borrow"]))
        got = 0
        while got < 1 << 30:
            piece = await reader.read(1 << 20)
            assert piece, f"it ended after {got} bytes"
            got += len(piece)
        writer.transport.abort()
        assert peak_mib(agent.process.pid) - before < 24


async def test_a_large_body_of_token_ids_does_not_stall_a_stream(standin: OpenAiStandin, tmp_path: Path):
    """64 MiB of token ids cost 276 ms in one decode; beside a helper the stream must not notice them.

    What a busy machine does to a stream by itself is measured first, in the same minute. The body goes to a
    server of its own: the stand-in would stall its streams over it.
    """
    document = manifest(standin.url, slots=4)
    (first,) = document["spec"]["upstreams"]
    port, uploads_to = first["port"], free_port()
    with OpenAiStandin() as other, AgentProcess(tmp_path / "agent", document) as agent:
        second = first | {"name": "other", "target": other.url, "port": uploads_to, "resource": "more"}
        document["spec"]["resources"].append({"name": "more", "type": "memory"})
        document["spec"]["upstreams"].append(second)
        agent.write(document)
        agent.until(lambda: [up["lendable"] for up in agent.status()["agent"]["upstreams"]] == [True, True])
        ids = json.dumps([1234567] * (BODY_MIB * MIB // 9 - 100), separators=(",", ":"))
        raw = request(
            "/v1/completions", b'{"model":"m","prompt":%b}' % ids.encode(), token=agent.tokens["borrow"]
        )
        assert len(raw) > 50 * MIB
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        ask = {"model": "m", "messages": [], "stream": True, "standin": {"chunks": 5000, "every_s": 0.005}}
        writer.write(request(CHAT, ask, token=agent.tokens["borrow"]))
        await reader.readuntil(b"\r\n\r\n")
        quiet = await longest_gap(reader, 1.5)
        uploading = asyncio.get_running_loop().create_task(asyncio.to_thread(send, uploads_to, raw))
        beside = await longest_gap(reader, 2.5)
        assert (await uploading).startswith(b"HTTP/1.1 200 ")
        writer.transport.abort()
    assert beside < 0.050 + 2 * quiet


async def longest_gap(reader: asyncio.StreamReader, seconds: float) -> float:
    """The longest time without a byte within the next seconds."""
    end, longest = time.monotonic() + seconds, 0.0
    last = time.monotonic()
    while last < end:
        assert await reader.read(65536)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    return longest
