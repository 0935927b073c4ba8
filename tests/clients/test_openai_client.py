"""The real openai client through a whole agent to the real servers, recorded on both sides of the agent.

    client -> relay -> agent -> relay -> server

What the client receives is byte for byte what the server sent to the agent, whatever it asks for; where the
agent answers by itself, the client understands it, and does what the answer says.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import openai
import pytest
import pytest_asyncio

from lab.llama_lab import LabOptions, llama_server
from standins import agreement
from standins.agents import lender, manifest
from standins.fixtures_llama import require_llama
from standins.relay import relay
from standins.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from lab.llama_lab import LlamaLab
    from lab.ollama_lab import OllamaLab
    from standins.agents import Lender
    from standins.relay import Recorded, Relay

pytestmark = pytest.mark.component
SAYS: Any = [{"role": "user", "content": "tell me a story"}]
GREEDY: Any = {"temperature": 0}
"""What the random model says then is always the same, and goes on for as long as it is let."""
ENDLESS: Any = GREEDY | {"max_tokens": 4000, "extra_body": {"ignore_eos": True}}


@dataclass
class Party:
    """A client, the agent between, and what passed on both sides."""

    client: openai.AsyncOpenAI
    lent: Lender
    front: Relay
    back: Relay
    model: str

    def both(self, path: str) -> tuple[Recorded, Recorded]:
        """What the client got, and what the server sent."""
        (got,), (sent,) = self.front.of(path), self.back.of(path)
        return got, sent

    def unchanged(self, path: str, status: int = 200) -> None:
        """The one reply on this path went through as it was."""
        got, sent = self.both(path)
        assert sent.reply.status == status
        assert sent.reply.whole
        assert sent.reply.body
        assert (got.reply.status, got.fields, got.reply.body) == (status, sent.fields, sent.reply.body)
        assert got.reply.whole

    async def nothing_left(self) -> None:
        host = self.lent.agent.host
        await until(lambda: not host.requests)
        agreement.check_empty(host, self.lent.agent._journal, self.lent.agent.reclaim.reclaims)


@contextlib.asynccontextmanager
async def party(folder: Path, port: int, dialect: str, model: str, **more: Any) -> AsyncIterator[Party]:
    async with relay(port) as back:
        document = manifest(back.url, dialect=dialect, slots=2)
        async with lender(folder / "agent", document) as lent, relay(lent.port) as front:
            await lent.until(lambda up: up["lendable"])
            options: dict[str, Any] = {"api_key": lent.tokens.borrow, "max_retries": 0} | more
            web = openai.DefaultAsyncHttpxClient(trust_env=False)
            async with openai.AsyncOpenAI(base_url=f"{front.url}/v1", http_client=web, **options) as client:
                yield Party(client, lent, front, back, model)


@pytest.fixture(scope="module")
def embedding_llama() -> Iterator[LlamaLab]:
    """A llama-server that makes embeddings, too."""
    require_llama()
    with llama_server(LabOptions(slots=2, ctx=8192, embedding=True)) as lab:
        yield lab


@pytest_asyncio.fixture(
    params=[
        pytest.param("llamacpp", marks=pytest.mark.llama),
        pytest.param("ollama", marks=pytest.mark.ollama),
    ]
)
async def through(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Party]:
    """The client and either server."""
    if request.param == "llamacpp":
        server: LlamaLab | OllamaLab = request.getfixturevalue("embedding_llama")
        model = "lab"
    else:
        server, model = request.getfixturevalue("ollama"), "tiny"
    async with party(tmp_path, server.port, request.param, model) as made:
        yield made


async def test_chat(through: Party) -> None:
    said = await through.client.chat.completions.create(
        model=through.model, messages=SAYS, max_tokens=5, **GREEDY
    )
    assert said.choices[0].message.role == "assistant"
    assert said.usage is not None
    assert said.usage.completion_tokens > 0
    through.unchanged("/v1/chat/completions")
    await through.nothing_left()


async def test_a_stream(through: Party) -> None:
    stream = await through.client.chat.completions.create(
        model=through.model,
        messages=SAYS,
        max_tokens=8,
        stream=True,
        stream_options={"include_usage": True},
        **GREEDY,
    )
    events = [event async for event in stream]
    assert len(events) > 2
    assert [one.finish_reason for event in events for one in event.choices if one.finish_reason] == ["length"]
    through.unchanged("/v1/chat/completions")
    await through.nothing_left()
    assert through.lent.counts() == {"completed": 1}


async def test_completions(through: Party) -> None:
    said = await through.client.completions.create(model=through.model, prompt="hello", max_tokens=4)
    assert said.object == "text_completion"
    through.unchanged("/v1/completions")
    await through.nothing_left()


async def test_responses(through: Party) -> None:
    stream = await through.client.responses.create(
        model=through.model, input="hello", max_output_tokens=16, stream=True
    )
    kinds = [event.type async for event in stream]
    assert kinds[-1] in {"response.completed", "response.incomplete"}
    through.unchanged("/v1/responses")
    await through.nothing_left()


@pytest.mark.parametrize("encoding", ["float", "base64"])
async def test_embeddings(through: Party, encoding: Any) -> None:
    found = await through.client.embeddings.create(
        model=through.model, input=["hello", "world"], encoding_format=encoding
    )
    assert len(found.data) == 2
    assert len(found.data[0].embedding) > 0
    through.unchanged("/v1/embeddings")
    await through.nothing_left()


async def test_models(through: Party) -> None:
    names = {model.id async for model in through.client.models.list()}
    assert any(name.startswith(through.model) for name in names)
    through.unchanged("/v1/models")


async def test_what_the_server_refuses(through: Party) -> None:
    with pytest.raises(openai.APIStatusError) as refused:
        await through.client.chat.completions.create(model=through.model, messages="none")  # type: ignore[arg-type]
    through.unchanged("/v1/chat/completions", refused.value.status_code)
    assert refused.value.status_code >= 400
    await through.nothing_left()


async def test_a_cancelled_stream_is_closed_at_the_server(through: Party) -> None:
    stream = await through.client.chat.completions.create(
        model=through.model, messages=SAYS, stream=True, **ENDLESS
    )
    async for _ in stream:
        break
    await stream.close()
    got, sent = through.both("/v1/chat/completions")
    await until(lambda: sent.client_left, within=3.0)
    assert got.client_left
    assert not sent.reply.whole
    assert through.lent.counts() == {"client_closed": 1}


async def test_a_cancelled_call_is_closed_at_the_server(through: Party) -> None:
    call = asyncio.ensure_future(
        through.client.chat.completions.create(model=through.model, messages=SAYS, **ENDLESS)
    )
    await until(lambda: through.back.of("/v1/chat/completions"))
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await call
    (sent,) = through.back.of("/v1/chat/completions")
    await until(lambda: sent.client_left, within=3.0)
    assert through.lent.counts() == {"client_closed": 1}


class TestOurOwnAnswers:
    """Of the agent itself: they reach nobody behind it, and the client makes the right exception of them."""

    async def test_a_wrong_token(self, through: Party) -> None:
        stranger = through.client.with_options(api_key="somebody-else")
        with pytest.raises(openai.AuthenticationError) as refused:
            await stranger.chat.completions.create(model=through.model, messages=SAYS)
        assert refused.value.code == "unauthorized"
        assert not through.back.of("/v1/chat/completions")

    async def test_a_host_that_does_not_lend_is_asked_once(self, through: Party) -> None:
        assert (await through.lent.api("POST", "/admin/pause", {"for": "1h"}))[0] == 200
        insistent = through.client.with_options(max_retries=2)
        with pytest.raises(openai.InternalServerError) as refused:
            await insistent.chat.completions.create(model=through.model, messages=SAYS)
        assert (refused.value.status_code, refused.value.code) == (503, "lending_disabled")
        assert refused.value.type == "no_vacancy"
        assert len(through.front.of("/v1/chat/completions")) == 1, "x-should-retry: false"
        assert not through.back.of("/v1/chat/completions")

    async def test_discovery_goes_on_meanwhile(self, through: Party) -> None:
        await through.lent.api("POST", "/admin/pause", {"for": "1h"})
        assert [model async for model in through.client.models.list()]
        through.unchanged("/v1/models")


@pytest.mark.ollama
class TestOllama:
    async def test_one_model(self, ollama: OllamaLab, tmp_path: Path) -> None:
        async with party(tmp_path, ollama.port, "ollama", "tiny") as through:
            assert (await through.client.models.retrieve("tiny")).id == "tiny"
            through.unchanged("/v1/models/tiny")

    async def test_a_model_of_the_cloud(self, ollama: OllamaLab, tmp_path: Path) -> None:
        async with party(tmp_path, ollama.port, "ollama", "tiny") as through:
            for call in (
                through.client.chat.completions.create(model="big:cloud", messages=SAYS),
                through.client.models.retrieve("big:cloud"),
            ):
                with pytest.raises(openai.PermissionDeniedError) as refused:
                    await call
                assert refused.value.code == "cloud_model"
            assert not through.back.of("/v1/chat/completions")

    async def test_a_model_that_is_not_there(self, ollama: OllamaLab, tmp_path: Path) -> None:
        async with party(tmp_path, ollama.port, "ollama", "tiny") as through:
            with pytest.raises(openai.NotFoundError):
                await through.client.chat.completions.create(model="nobody", messages=SAYS)
            through.unchanged("/v1/chat/completions", 404)
            await through.nothing_left()


@pytest.mark.llama
async def test_a_server_without_embeddings_says_so(llama: LlamaLab, tmp_path: Path) -> None:
    async with party(tmp_path, llama.port, "llamacpp", "lab") as through:
        with pytest.raises(openai.InternalServerError) as refused:
            await through.client.embeddings.create(model="lab", input="x")
        assert refused.value.status_code == 501
        through.unchanged("/v1/embeddings", 501)
