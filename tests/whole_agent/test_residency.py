"""A model that stays warm is not charged again: a real Ollama on memory, and on a card its stand-in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lab.nvidia_smi_lab import device
from standins.agents import configuration, lender, manifest
from standins.comfyui_standin import ComfyStandin, graph
from standins.until import until
from vacancy_agent import cli_text
from vacancy_agent.core.facts import MemoryCapacity, Ready, Stale

if TYPE_CHECKING:
    from pathlib import Path

    from lab.llama_lab import LlamaLab
    from lab.nvidia_smi_lab import NvidiaSmiLab
    from lab.ollama_lab import OllamaLab
    from standins.agents import Lender
    from standins.ollama_server import OllamaStandin

pytestmark = pytest.mark.component
MORE_THAN_THERE_IS = 60_000_000
"""MiB: nothing but a credit admits a request that is charged this."""
MESSAGES = [{"role": "user", "content": "hi"}]


def charged(document: dict[str, Any], **models: Any) -> dict[str, Any]:
    """The manifest with these footprints."""
    (upstream,) = document["spec"]["upstreams"]
    spec = document["spec"] | {"upstreams": [upstream | {"models": models}]}
    return document | {"spec": spec}


async def charge(lent: Lender, folder: Path, document: dict[str, Any], need: int) -> None:
    """Charge every request that from now on."""
    wanted = charged(document, default={"minFreeMiB": need})
    await lent.agent.apply(configuration(folder, wanted, lent.tokens))


async def generate(lent: Lender, model: str = "tiny", **options: Any) -> tuple[int, Any]:
    body = {"model": model, "prompt": "hi", "stream": False, "options": {"num_predict": 2} | options}
    async with lent.ask("POST", "/api/generate", json=body) as answer:
        return answer.status, await answer.json()


async def chat(lent: Lender, model: str = "tiny") -> tuple[int, Any]:
    body = {"model": model, "messages": MESSAGES, "max_tokens": 2}
    async with lent.ask("POST", "/v1/chat/completions", json=body) as answer:
        return answer.status, await answer.json()


async def credit(lent: Lender) -> dict[str, Any]:
    found: dict[str, Any] = (await lent.status())["upstreams"]["up"]["residency"]
    return found


def why_not(answer: tuple[int, Any]) -> str:
    status, body = answer
    assert status == 503, body
    assert body["error"]["code"] == "insufficient_capacity"
    found: str = body["error"]["detail"]["credit"]
    return found


@pytest.mark.ollama
async def test_a_model_that_stays_warm_is_credited_where_its_context_is_known(
    ollama: OllamaLab, tmp_path: Path
) -> None:
    document = manifest(ollama.url, dialect="ollama")
    async with lender(tmp_path, charged(document, default={"minFreeMiB": 1})) as lent:
        await lent.until(lambda up: up["lendable"])
        assert (await generate(lent, num_ctx=1024))[0] == 200
        assert await credit(lent) == {}, "it was not resident"
        await lent.until(lambda up: up["models"] == ["tiny:latest"])
        await charge(lent, tmp_path, document, MORE_THAN_THERE_IS)

        assert (await generate(lent, num_ctx=1024))[0] == 200
        shown = await credit(lent)
        assert (shown["credited"], shown["model"], shown["chargedMiB"]) == (True, "tiny:latest", 0)
        assert shown["why"] == "resident: listed with context 1024, seen with a request of this kind"
        assert shown["why"] in cli_text.status(await lent.status())
        told = [facts for event, facts in lent.told if event == "credited"]
        assert [facts["model"] for facts in told] == ["tiny:latest"]
        assert (await lent.status())["agent"]["summary"]["models"] == ["tiny:latest"]

        assert "not known to reuse the resident context (1024)" in why_not(await generate(lent, num_ctx=2048))
        assert "not known to reuse" in why_not(await generate(lent)), "its own default is another"
        assert "not known to reuse" in why_not(await chat(lent))
        assert "besides num_ctx" in why_not(await generate(lent, num_ctx=1024, num_thread=1))
        assert "not resident" in why_not(await generate(lent, "small", num_ctx=1024))
        assert {name: row["context_length"] for name, row in ollama.loaded().items()} == {"tiny:latest": 1024}


@pytest.mark.ollama
async def test_what_was_seen_covers_unset_contexts_by_kind_and_a_restart(
    ollama: OllamaLab, tmp_path: Path
) -> None:
    document = manifest(ollama.url, dialect="ollama")
    async with lender(tmp_path, charged(document, default={"minFreeMiB": 1})) as lent:
        await lent.until(lambda up: up["lendable"])
        assert (await generate(lent))[0] == 200
        await until(lambda: lent.agent.host.board.contexts.version)
    async with lender(tmp_path, charged(document, default={"minFreeMiB": MORE_THAN_THERE_IS})) as lent:
        await lent.until(lambda up: up["models"] == ["tiny:latest"])
        assert (await generate(lent))[0] == 200
        assert "seen with a request of this kind" in (await credit(lent))["why"]
        assert "not known to reuse" in why_not(await chat(lent)), "/v1 has not been seen yet"


@pytest.mark.ollama
async def test_an_unset_context_is_known_where_the_modelfile_sets_it(
    ollama: OllamaLab, tmp_path: Path
) -> None:
    body = {"model": "wide", "prompt": "hi", "options": {"num_predict": 1}, "stream": False}
    ollama.ask("POST", "/api/generate", body)
    document = manifest(ollama.url, dialect="ollama")
    async with lender(tmp_path, charged(document, default={"minFreeMiB": MORE_THAN_THERE_IS})) as lent:
        await lent.until(lambda up: up["models"] == ["wide:latest"])
        assert (await chat(lent, "wide"))[0] == 200
        assert "8192, its Modelfile sets it" in (await credit(lent))["why"]


def on_a_card(server: OllamaStandin, **models: Any) -> dict[str, Any]:
    document = manifest(
        server.url, dialect="ollama", resource="gpu", spec_resources=[{"name": "gpu", "type": "nvidia"}]
    )
    return charged(document, **models)


SMALL = {"items": [{"name": "small", "minFreeMiB": 18_000, "residentMinFreeMiB": 300}]}
"""Of 24,164 MiB that are free: they fit once, and not a second time beside the 8 GiB that the model takes."""


def free_on_the_card(lent: Lender) -> int:
    reading = lent.agent.host.board.capacity["gpu"]
    assert isinstance(reading, Ready)
    assert isinstance(reading.value, MemoryCapacity)
    return reading.value.free


async def test_the_card_that_the_model_fills_is_not_charged_again(
    ollama_standin: OllamaStandin, tmp_path: Path
) -> None:
    ollama_standin.behave(parallel=2)
    async with lender(tmp_path, on_a_card(ollama_standin, **SMALL)) as lent:
        await lent.until(lambda up: up["lendable"])
        for _ in range(3):
            status, body = await generate(lent, "small", num_ctx=4096)
            assert status == 200, body
        shown = await credit(lent)
        assert (shown["model"], shown["chargedMiB"]) == ("small:latest", 300)
        assert "context 8192, seen with a request of this kind" in shown["why"], "what two slots show"
        assert ollama_standin.report()["loads"] == ["small:latest 8192"]
        assert (await lent.upstream())["lendable"]
        assert free_on_the_card(lent) < 18_000

        refused = await generate(lent, "small", num_ctx=8192)
        assert "not known to reuse" in why_not(refused), "as one slot of that size it would be loaded anew"
        ollama_standin.let_go()
        await until(lambda: free_on_the_card(lent) > 18_000)
        assert (await generate(lent, "small", num_ctx=8192))[0] == 200, "there is room again"
        assert await credit(lent) == {}


async def test_no_credit_for_a_model_that_is_about_to_go(
    ollama_standin: OllamaStandin, tmp_path: Path
) -> None:
    ollama_standin.behave(keep_alive_s=25)
    async with lender(tmp_path, on_a_card(ollama_standin, **SMALL)) as lent:
        await lent.until(lambda up: up["lendable"])
        assert (await generate(lent, "small", num_ctx=4096))[0] == 200
        assert why_not(await generate(lent, "small", num_ctx=4096)) == "none: the model is about to go"


async def test_a_list_that_does_not_come_is_no_proof_and_no_empty_list(
    ollama_standin: OllamaStandin, tmp_path: Path
) -> None:
    async with lender(tmp_path, on_a_card(ollama_standin, **SMALL)) as lent:
        await lent.until(lambda up: up["lendable"])
        assert (await generate(lent, "small", num_ctx=4096))[0] == 200
        await lent.until(lambda up: up["models"])
        ollama_standin.behave(ps="hangs")
        await until(lambda: isinstance(lent.agent.host.board.residency["up"], Stale))
        why = why_not(await generate(lent, "small", num_ctx=4096))
        assert why == "none: no answer to GET /api/ps within 1 s"
        assert lent.agent.host.board.residency["up"].value.models, "what was seen last is still there"
        ollama_standin.behave()
        assert (await generate(lent, "small", num_ctx=4096))[0] == 200


async def test_a_model_that_is_not_wholly_on_the_card_is_refused_until_it_goes(
    ollama_standin: OllamaStandin, tmp_path: Path
) -> None:
    ollama_standin.behave(on_card=0.5)
    async with lender(tmp_path, on_a_card(ollama_standin, default={"minFreeMiB": 100})) as lent:
        await lent.until(lambda up: up["lendable"])
        assert (await generate(lent, "small"))[0] == 200
        await lent.until(lambda up: up["models"])  # until it was seen, nobody knows where it lies
        status, body = await generate(lent, "small")
        assert (status, body["error"]["code"]) == (503, "upstream_not_on_gpu")
        assert body["error"]["detail"]["model"] == "small:latest"
        ollama_standin.behave()
        ollama_standin.let_go()
        await lent.until(lambda up: not up["models"])
        assert (await generate(lent, "small"))[0] == 200


@pytest.mark.llama
async def test_idle_slots_of_a_real_llama_server_are_a_credit(llama: LlamaLab, tmp_path: Path) -> None:
    document = manifest(llama.url, dialect="llamacpp", slots=2)
    async with lender(tmp_path, charged(document, default={"minFreeMiB": MORE_THAN_THERE_IS})) as lent:
        await lent.until(lambda up: up["lendable"])
        assert (await chat(lent))[0] == 200
        assert (await credit(lent))["why"] == "resident: shown by idle slots"


async def test_what_comfyuis_allocator_holds_is_added_to_the_card(
    nvidia_smi: NvidiaSmiLab, tmp_path: Path
) -> None:
    nvidia_smi.devices(device("GPU-0", free=10_000))
    with ComfyStandin("0.28.1") as comfy:
        comfy.behave(device="cuda", torch=8 << 30)
        card = [{"name": "gpu", "type": "nvidia"}]
        document = manifest(comfy.url, dialect="comfyui", resource="gpu", spec_resources=card)
        async with lender(tmp_path, charged(document, default={"minFreeMiB": 18_000})) as lent:
            await lent.until(lambda up: up["lendable"])
            assert (await submitted(lent))[0] == 200
        comfy.behave(device="cpu")
        async with lender(tmp_path, charged(document, default={"minFreeMiB": 18_000})) as lent:
            await lent.until(lambda up: up["reason"] == "insufficient_capacity")
            found = why_not(await submitted(lent))
        assert found == "none: the server does not compute on exactly one cuda device"


async def submitted(lent: Lender) -> tuple[int, Any]:
    async with lent.ask("POST", "/prompt", json={"prompt": graph(0.1)}) as answer:
        return answer.status, await answer.json()
