"""A10: `[N/A]` where a number should be crashes the reader, or reads as 0; one bad card takes others along.

Seen as marimo-team/marimo#6822, XuehaiPan/nvitop#208 and others. The readings themselves are tested where
they are parsed; here a whole agent with two cards: the bad one refuses as unmeasured, the other one lends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from lab.nvidia_smi_lab import device
from standins.agents import free_port, lender, manifest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from lab.nvidia_smi_lab import NvidiaSmiLab
    from standins.agents import Lender
    from standins.openai_server import OpenAiStandin

pytestmark = pytest.mark.component
GOOD, BAD = "GPU-5c89852c-d268-4dfc-8d9a-7b3d3a9a1b2c", "GPU-00000000-1111-2222-3333-444444444444"
CARDS = (("good", GOOD), ("bad", BAD))


def good() -> dict[str, object]:
    return device(GOOD, free=20_000)


def bad(**fields: object) -> dict[str, object]:
    return device(BAD, pci__bus_id="00000000:02:00.0", name="NVIDIA GB10, again", **fields)


@pytest_asyncio.fixture
async def two_cards(
    standin: OpenAiStandin, nvidia_smi: NvidiaSmiLab, tmp_path: Path
) -> AsyncIterator[tuple[Lender, NvidiaSmiLab]]:
    """An agent with an upstream on each of two cards, both well."""
    nvidia_smi.devices(good(), bad())
    document = manifest(
        standin.url,
        spec_sampling={"interval": "1s"},
        spec_resources=[{"name": name, "type": "nvidia", "device": uuid} for name, uuid in CARDS],
        spec_upstreams=[
            {"name": name, "dialect": "openai", "target": standin.url, "port": free_port(), "resource": name}
            for name, _ in CARDS
        ],
    )
    async with lender(tmp_path / "agent", document) as lent:
        await lent.until(lambda up: up["lendable"])
        yield lent, nvidia_smi


async def ask(lent: Lender, upstream: str) -> tuple[int, str | None, Any]:
    port = lent.agent.host.board.settings.upstreams[upstream].port
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    headers = {"Authorization": f"Bearer {lent.tokens.borrow}"}
    async with lent.http.post(url, json={"model": "m"}, headers=headers) as got:
        return got.status, got.headers.get("X-Vacancy-Reason"), await got.json()


async def sampled(lent: Lender) -> None:
    """Both cards are read once more."""
    await lent.agent.collectors.fresh(["good", "bad"])


async def states(lent: Lender) -> dict[str, tuple[str, object]]:
    resources = (await lent.status())["agent"]["resources"]
    return {one["name"]: (one["state"], one["freeMiB"]) for one in resources}


@pytest.mark.parametrize(
    "text", ["[N/A]", "[Not Supported]", "ERR!", "[Unknown Error]", "[GPU requires reset]", ""]
)
async def test_the_bad_card_refuses_as_unmeasured_and_the_other_one_lends(
    two_cards: tuple[Lender, NvidiaSmiLab], text: str
) -> None:
    lent, smi = two_cards
    smi.devices(good(), bad(memory__total=text, memory__used=text, memory__free=text))
    await sampled(lent)
    status, reason, body = await ask(lent, "bad")
    assert (status, reason) == (503, "resource_unmeasured")
    assert body["error"]["detail"]["resource"] == "bad"
    assert (await ask(lent, "good"))[0] == 200
    await sampled(lent)
    assert await states(lent) == {"good": ("ready", 20_000), "bad": ("unknown", None)}
    smi.devices(good(), bad())
    await sampled(lent)
    assert (await ask(lent, "bad"))[0] == 200, "a card that answers again lends again"


async def test_cards_are_told_apart_by_identity_and_not_by_place(
    two_cards: tuple[Lender, NvidiaSmiLab],
) -> None:
    lent, smi = two_cards
    smi.devices(bad(memory__free="[N/A]"), good())
    await sampled(lent)
    assert (await ask(lent, "good"))[0] == 200
    assert (await ask(lent, "bad"))[1] == "resource_unmeasured"


async def test_a_card_that_is_gone_is_not_replaced_by_the_other(
    two_cards: tuple[Lender, NvidiaSmiLab],
) -> None:
    lent, smi = two_cards
    smi.devices(good())
    await sampled(lent)
    assert (await ask(lent, "bad"))[1] == "resource_unmeasured"
    assert (await ask(lent, "good"))[0] == 200


@pytest.mark.parametrize(
    ("output", "code"),
    [
        (b"Failed to initialize NVML: Driver/library version mismatch\n", 18),
        (b"", 0),
        (b"\x00\xff\r\n" * 50, 0),
    ],
    ids=["driver", "silence", "noise"],
)
async def test_a_driver_that_fails_refuses_on_both_and_ends_nothing(
    two_cards: tuple[Lender, NvidiaSmiLab], tmp_path: Path, output: bytes, code: int
) -> None:
    lent, smi = two_cards
    said = tmp_path / "said"
    said.write_bytes(output)
    smi.replay(said, code)
    await sampled(lent)
    for name, _ in CARDS:
        assert (await ask(lent, name))[:2] == (503, "resource_unmeasured")
    assert await states(lent) == {"good": ("unknown", None), "bad": ("unknown", None)}
    _, metrics = await lent.api("GET", "/metrics")
    assert "vacancy_resource_free_bytes{" not in metrics, "what is not known has no number"
