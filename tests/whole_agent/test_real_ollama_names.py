"""The real Ollama behind a whole agent: the model that ran is the model that was judged, or nothing ran.

What is refused here is sent past the agent first, to show that the server would have taken it.
"""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import pytest_asyncio

from standins import agreement
from standins.agents import lender, manifest
from vacancy_agent.core.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from lab.ollama_lab import OllamaLab
    from standins.agents import Lender
    from vacancy_agent.core.facts import Instant

pytestmark = [pytest.mark.component, pytest.mark.ollama]
SHORT = {"options": {"num_predict": 2, "num_ctx": 512}}
SAYS = [{"role": "user", "content": "hi"}]
TYPED = {"Content-Type": "application/json"}
ZSTD = bytes.fromhex("28b52ffd20")


@pytest_asyncio.fixture
async def lent(ollama: OllamaLab, tmp_path: Path) -> AsyncIterator[Lender]:
    async with lender(tmp_path / "agent", manifest(ollama.url, dialect="ollama", slots=2)) as lent:
        await lent.until(lambda up: up["lendable"])
        yield lent


async def past(
    ollama: OllamaLab, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, bytes]:
    """The same request past the agent."""
    async with (
        aiohttp.ClientSession() as http,
        http.request(method, ollama.url + path, data=body or None, headers=TYPED | headers) as got,
    ):
        return got.status, await got.read()


async def through(lent: Lender, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, str]:
    async with lent.ask(method, path, data=body or None, headers=TYPED | headers) as got:
        await got.read()
        return got.status, got.headers.get("x-vacancy-reason", "")


def models_that_ran(ollama: OllamaLab) -> set[str]:
    return set(ollama.loaded())


async def nothing_is_left(lent: Lender) -> None:
    async with asyncio.timeout(5):
        while lent.agent.host.requests:  # noqa: ASYNC110 - its last turn of the loop
            await asyncio.sleep(0.005)
    agreement.check_empty(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)


BYPASSES = [
    b'{"model":"tiny","MODEL":"wide"}',
    b'{"model":"tiny","model":"wide"}',
    b'{"model":"tiny","mod\\u0065l":"wide"}',
    b'{"MoDeL":"wide"}',
]


@pytest.mark.parametrize("body", BYPASSES)
async def test_a_second_model_in_the_body_runs_past_the_agent_and_not_through_it(
    lent: Lender, ollama: OllamaLab, body: bytes
) -> None:
    whole = body[:-1] + b',"prompt":"hi","stream":false,"options":{"num_predict":1}}'
    status, _ = await past(ollama, "POST", "/api/generate", whole)
    assert (status, models_that_ran(ollama)) == (200, {"wide:latest"}), "the trap is gone"
    ollama.unload_all()
    assert await through(lent, "POST", "/api/generate", whole) == (400, "ambiguous_body")
    assert models_that_ran(ollama) == set()


async def test_what_follows_the_object_is_not_looked_at_by_the_server(
    lent: Lender, ollama: OllamaLab
) -> None:
    body = (
        json.dumps({"model": "tiny", "prompt": "hi", "stream": False, **SHORT}).encode() + b'{"model":"wide"}'
    )
    status, _ = await past(ollama, "POST", "/api/generate", body)
    assert status == 200
    assert await through(lent, "POST", "/api/generate", body) == (400, "ambiguous_body")


@pytest.mark.parametrize(
    "path",
    [
        "/api/generate",
        "/api/chat",
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/messages",
        "/v1/responses",
    ],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streaming"])
async def test_a_query_chooses_nothing_and_the_end_of_each_stream_is_seen(
    lent: Lender, ollama: OllamaLab, path: str, stream: bool
) -> None:
    body: dict[str, Any] = {
        "model": "TINY",
        "messages": SAYS,
        "prompt": "hi",
        "input": "hi",
        "stream": stream,
    }
    body |= {"max_tokens": 2, "max_output_tokens": 2}
    if path.startswith("/api/"):
        body |= SHORT
    status, _ = await through(lent, "POST", f"{path}?model=wide&beta=true", json.dumps(body).encode())
    assert (status, models_that_ran(ollama)) == (200, {"tiny:latest"})
    await nothing_is_left(lent)
    assert lent.counts() == {"completed": 1}


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("tiny", True),
        ("Tiny:LATEST", True),
        ("library/tiny", True),
        ("registry.ollama.ai/library/tiny:latest", True),
        ("https://registry.ollama.ai/library/tiny", True),
        ("http:///library/tiny", True),
        # Trimmed by newer releases; judged as the model that it is there, and nothing runs here.
        (" tiny ", False),
        ("tiny\t", False),
        ("ti/ny", False),
        ("tiny:", False),
        ("/tiny", False),
        ("tiny@sha256", False),
        ("\uff34iny", False),
        ("\u212a", False),
    ],
)
async def test_the_spelling_of_a_name(
    lent: Lender, ollama: OllamaLab, monkeypatch: pytest.MonkeyPatch, name: str, runs: bool
) -> None:
    jobs: list[str | None] = []
    reserve = Ledger.reserve

    def watched(
        ledger: Ledger, upstream: str, now: Instant, borrower: str, model: str | None, *rest: Any
    ) -> Any:
        jobs.append(model)
        return reserve(ledger, upstream, now, borrower, model, *rest)

    monkeypatch.setattr(Ledger, "reserve", watched)
    body = json.dumps({"model": name, "prompt": "hi", "stream": False, **SHORT}).encode()
    status, _ = await through(lent, "POST", "/api/generate", body)
    assert (status == 200) == runs
    assert models_that_ran(ollama) == ({"tiny:latest"} if runs else set())
    assert (jobs == ["tiny:latest"]) == (runs or name.strip() == "tiny")


@pytest.mark.parametrize("path", ["/api/generate", "/api/chat"])
@pytest.mark.parametrize("keep_alive", [0, "0s", 1e-10, "0.1ns"])
async def test_the_unload_form_leaves_a_model_where_it_is(
    lent: Lender, ollama: OllamaLab, path: str, keep_alive: object
) -> None:
    ollama.ask("POST", "/api/generate", {"model": "tiny", "prompt": "hi", "stream": False, **SHORT})
    body = json.dumps({"model": "tiny", "keep_alive": keep_alive}).encode()
    assert await through(lent, "POST", path, body) == (403, "management_denied")
    assert models_that_ran(ollama) == {"tiny:latest"}
    status, content = await past(ollama, "POST", path, body)
    assert (status, json.loads(content)["done_reason"]) == (200, "unload")


@pytest.mark.parametrize("keep_alive", [-1, "-1s", 1e300, "2540400h", 86400])
async def test_no_model_stays_longer_than_half_an_hour(
    lent: Lender, ollama: OllamaLab, keep_alive: object
) -> None:
    body = {"model": "tiny", "prompt": "hi", "stream": False, "keep_alive": keep_alive, **SHORT}
    status, _ = await through(lent, "POST", "/api/generate", json.dumps(body).encode())
    assert status == 200
    rows = ollama.ask("GET", "/api/ps")["models"]
    assert [0 < seconds_left(row["expires_at"]) <= 1801 for row in rows] == [True]


def seconds_left(expires_at: str) -> float:
    return (datetime.fromisoformat(expires_at) - datetime.now(UTC)).total_seconds()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/show", {"model": "gpt-oss:120b-cloud"}),
        ("POST", "/api/show", {"name": "gpt-oss:cloud"}),
        ("GET", "/v1/models/gpt-oss:cloud", None),
        ("GET", "/v1/models/gpt-oss%3Acloud", None),
        ("POST", "/api/chat", {"model": "gpt-oss:cloud", "messages": SAYS}),
        ("POST", "/v1/embeddings", {"model": "gpt-oss:x-cloud", "input": "x"}),
    ],
)
async def test_nothing_leaves_the_machine(lent: Lender, method: str, path: str, body: object) -> None:
    raw = b"" if body is None else json.dumps(body).encode()
    assert await through(lent, method, path, raw) == (403, "cloud_model")


async def test_a_body_in_zstd_is_no_json_to_anybody(lent: Lender) -> None:
    body = json.dumps({"model": "wide", "prompt": "hi"}).encode()
    frame = ZSTD + bytes([len(body)]) + ((len(body) << 3) | 1).to_bytes(3, "little") + body
    said = await through(lent, "POST", "/api/generate", frame, **{"Content-Encoding": "zstd"})
    assert said == (415, "content_encoding")


PATHS = [
    # (path, past the agent, through it)
    ("/api/%70s", 200, 403),
    ("/api/ps", 200, 403),
    ("/api/status", 200, 403),
    ("/v1/models/../../api/ps", None, 403),
    ("/v1/models/..%2F..%2Fapi%2Fps", 404, 403),
    ("/v1/models/tiny", 200, 200),
    ("/v1/models/tiny%3Alatest", 200, 200),
    ("/api/tags", 200, 200),
    ("/api/version", 200, 200),
    ("/", 200, 200),
    ("/v1/models", 200, 200),
    ("/api/tags/", 301, 403),
    ("/API/tags", 404, 403),
    ("//api/tags", 307, 403),
]


@pytest.mark.parametrize(("path", "there", "here"), PATHS)
async def test_paths(lent: Lender, ollama: OllamaLab, path: str, there: int | None, here: int) -> None:
    """As written: both clients would decode and tidy a path by themselves."""
    host, port = "127.0.0.1", lent.port
    if there is not None:
        assert await status_of(host, ollama.port, "GET", path) == there
    assert await status_of(host, port, "GET", path, f"Authorization: Bearer {lent.tokens.borrow}") == here


@pytest.mark.parametrize(
    ("path", "there", "here"), [("/", 200, 200), ("/api/tags", 200, 200), ("/v1/models", 405, 403)]
)
async def test_head_is_there_where_the_server_has_it(
    lent: Lender, ollama: OllamaLab, path: str, there: int, here: int
) -> None:
    assert await status_of("127.0.0.1", ollama.port, "HEAD", path) == there
    token = f"Authorization: Bearer {lent.tokens.borrow}"
    assert await status_of("127.0.0.1", lent.port, "HEAD", path, token) == here


async def test_a_trailing_slash_is_a_redirect_past_the_agent_and_nothing_through_it(
    lent: Lender, ollama: OllamaLab
) -> None:
    assert await status_of("127.0.0.1", ollama.port, "POST", "/api/generate/") == 307
    token = f"Authorization: Bearer {lent.tokens.borrow}"
    assert await status_of("127.0.0.1", lent.port, "POST", "/api/generate/", token) == 501


async def test_the_server_sees_its_own_name_as_the_host(lent: Lender, ollama: OllamaLab) -> None:
    foreign = "Host: lender.example"
    assert await status_of("127.0.0.1", ollama.port, "GET", "/api/tags", foreign) == 403
    token = f"Authorization: Bearer {lent.tokens.borrow}"
    assert await status_of("127.0.0.1", lent.port, "GET", "/api/tags", foreign, token) == 200


async def test_a_redirect_names_the_proxy_and_not_the_server(ollama: OllamaLab, tmp_path: Path) -> None:
    document = manifest(ollama.url, dialect="ollama", management="allow")
    async with lender(tmp_path / "agent", document) as lent:
        await lent.until(lambda up: up["lendable"])
        head = await head_of(
            "127.0.0.1", lent.port, "GET", "/api/status/", f"Authorization: Bearer {lent.tokens.borrow}"
        )
        assert head.startswith("HTTP/1.1 301 ")
        assert "\r\nlocation: /api/status\r\n" in head.lower()


async def status_of(host: str, port: int, method: str, path: str, *lines: str) -> int:
    return int((await head_of(host, port, method, path, *lines)).split(" ")[1])


async def head_of(host: str, port: int, method: str, path: str, *lines: str) -> str:
    """The head of the answer to a request that no library has tidied."""
    reader, writer = await asyncio.open_connection(host, port)
    fields = [*lines, *([] if any(line.startswith("Host:") for line in lines) else [f"Host: {host}:{port}"])]
    text = "\r\n".join(
        [f"{method} {path} HTTP/1.1", *fields, "Connection: close", "Content-Length: 0", "", ""]
    )
    writer.write(text.encode())
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode()
    finally:
        writer.close()
        await writer.wait_closed()
