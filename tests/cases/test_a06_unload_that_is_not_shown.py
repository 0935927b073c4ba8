"""A06: a model stays in "Stopping...", and the owner does not get the memory back.

Seen as ollama/ollama#7606 and #9926. Right: the unload is asked for once and given up on after ten seconds,
the host says `UnloadNotConfirmed` once, nothing is credited, and once the server has let go that is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from standins.agents import lender, manifest
from standins.clock import AheadClock
from standins.desks import looked_again
from standins.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from standins.agents import Lender
    from standins.ollama_server import OllamaStandin

pytestmark = pytest.mark.component
LEFT_MIB = 24_564 - 400 - 8192
"""What the model leaves of the stand-in's card."""


def document(standin: OllamaStandin) -> dict[str, Any]:
    """Its model fits once beside the owner's desktop, and not twice."""
    return manifest(
        standin.url,
        dialect="ollama",
        resource="gpu",
        models={"default": {"minFreeMiB": 16_500}},
        spec_resources=[{"name": "gpu", "type": "nvidia"}],
    )


def posts(standin: OllamaStandin) -> list[dict[str, Any]]:
    """Every unload it was asked for."""
    return [one["body"] for one in standin.report()["asked"] if "keep_alive" in one.get("body", {})]


async def reclaimed(lent: Lender) -> tuple[str, str]:
    """Status and reason of the condition; empty while nothing is claimed."""
    lent.agent.findings.look()
    for condition in (await lent.status())["conditions"]:
        if condition["type"] == "Reclaimed":
            return condition["status"], condition["reason"]
    return "", ""


def told(lent: Lender) -> list[object]:
    """Every line of the log about a claim."""
    return [facts["reason"] for event, facts in lent.told if event == "reclaimed"]


async def pass_by(lent: Lender, clock: AheadClock, seconds: float) -> None:
    """Let time pass in steps after which presence is read anew: one that is too old is an edge of its own."""
    for _ in range(int(seconds / 10)):
        clock.advance(10.0)
        await looked_again(lent)


@pytest.mark.parametrize("unload", ["stays", "hangs"])
async def test_the_server_says_yes_or_nothing_and_keeps_the_model(
    ollama_standin: OllamaStandin, tmp_path: Path, unload: str
) -> None:
    clock = AheadClock()
    async with lender(tmp_path / "agent", document(ollama_standin), clock) as lent:
        await lent.until(lambda up: up["lendable"])
        async with lent.chat(model="small") as got:
            assert got.status == 200
        ollama_standin.behave(unload=unload)
        await lent.api("POST", "/admin/pause", {"for": "1h"})
        await until(lambda: posts(ollama_standin))
        assert await reclaimed(lent) == ("Unknown", "Unloading")
        clock.advance(10.0)
        await until(lambda: told(lent))
        assert await reclaimed(lent) == ("False", "UnloadNotConfirmed")
        shown = (await lent.status())["upstreams"]["up"]["reclaim"]["unload"]
        assert shown == {"shown": False, "why": "it still lists small:latest"}

        await pass_by(lent, clock, 80.0)
        assert posts(ollama_standin) == [{"model": "small:latest", "keep_alive": 0}], "no storm"
        assert told(lent) == ["UnloadNotConfirmed"], "once"

        await lent.api("POST", "/admin/resume", {})
        await lent.until(lambda up: up["reason"] == "insufficient_capacity")
        async with lent.chat(model="tiny") as refused:
            assert refused.headers["X-Vacancy-Reason"] == "insufficient_capacity", "nothing is credited"
            assert (await refused.json())["error"]["detail"]["freeMiB"] == LEFT_MIB

        await lent.api("POST", "/admin/pause", {"for": "1h"})
        await until(lambda: len(posts(ollama_standin)) == 2)
        ollama_standin.let_go()
        await until(lambda: told(lent) == ["UnloadNotConfirmed", "Reclaimed"])
        assert await reclaimed(lent) == ("True", "Reclaimed")


async def test_a_late_showing_counts(ollama_standin: OllamaStandin, tmp_path: Path) -> None:
    clock = AheadClock()
    async with lender(tmp_path / "agent", document(ollama_standin), clock) as lent:
        await lent.until(lambda up: up["lendable"])
        async with lent.chat(model="small") as got:
            assert got.status == 200
        ollama_standin.behave(unload="stays")
        await lent.api("POST", "/admin/pause", {"for": "1h"})
        await until(lambda: posts(ollama_standin))
        await pass_by(lent, clock, 90.0)
        await until(lambda: told(lent) == ["UnloadNotConfirmed"])
        ollama_standin.let_go()
        await until(lambda: told(lent) == ["UnloadNotConfirmed", "Reclaimed"], within=15)
        assert await reclaimed(lent) == ("True", "Reclaimed")
        assert len(posts(ollama_standin)) == 1
        metrics = (await lent.api("GET", "/metrics"))[1]
        assert 'vacancy_reclaimed{upstream="up"} 1.0' in metrics
