"""A05: other people's programs fill the card, and work is put there all the same.

Seen as gpustack/gpustack#2852, whose scheduler takes the whole device for its own. Right: what was measured
counts, at the moment of the forwarding; a measurement that is too old counts for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lab.nvidia_smi_lab import device
from standins import agreement
from standins.agents import lender, manifest
from standins.borrowers import Borrower
from standins.clock import AheadClock
from standins.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from lab.nvidia_smi_lab import NvidiaSmiLab
    from standins.openai_server import OpenAiStandin

pytestmark = pytest.mark.component
CARD = "GPU-5c89852c-d268-4dfc-8d9a-7b3d3a9a1b2c"


def document(standin: OpenAiStandin, interval: str = "1s") -> dict[str, Any]:
    return manifest(
        standin.url,
        resource="gpu",
        models={"default": {"minFreeMiB": 8000}},
        spec_resources=[{"name": "gpu", "type": "nvidia"}],
        spec_sampling={"interval": interval},
    )


async def test_what_is_measured_counts_although_nothing_of_ours_runs(
    standin: OpenAiStandin, nvidia_smi: NvidiaSmiLab, tmp_path: Path
) -> None:
    nvidia_smi.devices(device(CARD, total=24_564, free=20_000))
    async with lender(tmp_path / "agent", document(standin)) as lent:
        await lent.until(lambda up: up["lendable"])
        nvidia_smi.devices(device(CARD, total=24_564, free=900))
        await lent.until(lambda up: not up["lendable"])
        async with lent.chat() as got:
            assert (got.status, got.headers["X-Vacancy-Reason"]) == (503, "insufficient_capacity")
            detail = (await got.json())["error"]["detail"]
            assert detail.items() >= {"resource": "gpu", "freeMiB": 900, "needMiB": 8000}.items()
        assert standin.seen() == []
        assert (await lent.upstream())["reason"] == "insufficient_capacity"
        nvidia_smi.devices(device(CARD, total=24_564, free=20_000))
        await lent.until(lambda up: up["lendable"])
        async with lent.chat() as got:
            assert got.status == 200


async def test_one_that_waited_is_decided_by_the_reading_it_waited_for(
    standin: OpenAiStandin, nvidia_smi: NvidiaSmiLab, tmp_path: Path
) -> None:
    """The card fills between the first decision about a request and its forwarding."""
    nvidia_smi.devices(device(CARD, total=24_564, free=20_000))
    async with lender(tmp_path / "agent", document(standin, "30s")) as lent:
        await lent.until(lambda up: up["lendable"])
        async with await Borrower.at(lent.port, lent.tokens.borrow) as borrower:
            await borrower.chat(standin={"head_delay_s": 0.3})
            await until(standin.seen)
            nvidia_smi.devices(device(CARD, total=24_564, free=900))
            assert (await borrower.answer()).status == 200
            await borrower.chat()
            got = await borrower.answer()
        assert (got.status, got.reason) == (503, "insufficient_capacity")
        assert got.error["detail"]["freeMiB"] == 900
        assert len(standin.seen()) == 1
        agreement.check_empty(lent.agent.host, lent.agent._journal, lent.agent.reclaim.reclaims)


async def test_a_reading_that_does_not_come_in_a_second_is_busy_and_not_admitted(
    standin: OpenAiStandin, nvidia_smi: NvidiaSmiLab, tmp_path: Path
) -> None:
    nvidia_smi.devices(device(CARD, total=24_564, free=20_000))
    async with lender(tmp_path / "agent", document(standin, "30s")) as lent:
        await lent.until(lambda up: up["lendable"])
        nvidia_smi.mode("hang")
        async with lent.chat() as got:
            assert got.status == 200
        async with lent.chat() as got:
            assert (got.status, got.headers["X-Vacancy-Reason"]) == (503, "resource_busy")
            assert (await got.json())["error"]["detail"] == {"resource": "gpu", "cause": "needs_sample"}
        assert len(standin.seen()) == 1


async def test_the_last_good_reading_is_not_used_past_its_time(
    standin: OpenAiStandin, nvidia_smi: NvidiaSmiLab, tmp_path: Path
) -> None:
    nvidia_smi.devices(device(CARD, total=24_564, free=20_000))
    clock = AheadClock()
    async with lender(tmp_path / "agent", document(standin, "30s"), clock) as lent:
        await lent.until(lambda up: up["lendable"])
        clock.advance(121.0)
        observers = lent.agent.collectors._observers
        assert observers is not None
        observers._presence.request()
        await lent.until(lambda up: up["reason"] == "resource_unmeasured")
        async with lent.chat() as got:
            assert (got.status, got.headers["X-Vacancy-Reason"]) == (503, "resource_unmeasured")
            assert (await got.json())["error"]["detail"]["why"] == "the last reading is too old"
            assert got.headers["Retry-After"] == "30"
        assert standin.seen() == []
        assert await lent.agent.collectors._observers.sample(["gpu"], 5.0)  # type: ignore[union-attr,arg-type]
        async with lent.chat() as got:
            assert got.status == 200
