"""A schedule with a whole agent: who asks while it is closed is told when to come back, to the second."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from standins.agents import Lender, lender, manifest
from standins.clock import AheadClock

if TYPE_CHECKING:
    from pathlib import Path

    from standins.openai_server import OpenAiStandin

pytestmark = pytest.mark.component
HOUR = 3600


def opening_in(clock: AheadClock, seconds: int, *, lasting: int = 2 * HOUR) -> tuple[dict[str, Any], int]:
    """A schedule that opens about then, and in how many seconds exactly: windows begin at whole minutes."""
    now = datetime.fromtimestamp(clock.wall(), UTC)
    start = (now + timedelta(seconds=seconds)).replace(second=0, microsecond=0)
    end = start + timedelta(seconds=lasting)
    window: dict[str, Any] = {"days": ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]}
    window |= {"from": f"{start:%H:%M}", "to": f"{end:%H:%M}"}
    return {"timeZone": "UTC", "windows": [window]}, int((start - now).total_seconds())


async def asked(lent: Lender) -> tuple[int, str, int]:
    async with lent.chat() as reply:
        hint = int(reply.headers.get("Retry-After", 0))
        return reply.status, reply.headers.get("X-Vacancy-Reason", ""), hint


async def fresh(lent: Lender, clock: AheadClock, seconds: float) -> None:
    """Time passes, and everything is read anew."""
    clock.advance(seconds)
    await lent.until(lambda up: up["reason"] in {None, "lending_disabled"})


async def test_it_opens_and_closes_and_the_hint_is_the_time_to_the_opening(
    standin: OpenAiStandin, tmp_path: Path
):
    clock = AheadClock()
    schedule, opens = opening_in(clock, 5 * HOUR)
    async with lender(tmp_path, manifest(standin.url, spec_schedule=schedule), clock) as lent:
        await lent.until(lambda up: up["reason"] == "lending_disabled")
        assert await asked(lent) == (503, "lending_disabled", 300)
        state = (await lent.status())["agent"]["lending"]
        assert (state["allowed"], state["by"]) == (False, "schedule")
        await fresh(lent, clock, opens - 118)
        status, reason, hint = await asked(lent)
        assert (status, reason) == (503, "lending_disabled")
        assert 60 <= hint <= 120
        await fresh(lent, clock, 125)
        await lent.until(lambda up: up["lendable"])
        assert (await asked(lent))[0] == 200
        await fresh(lent, clock, 2 * HOUR)
        assert (await asked(lent))[:2] == (503, "lending_disabled")


async def test_a_pause_inside_a_window_and_a_window_inside_a_pause(standin: OpenAiStandin, tmp_path: Path):
    clock = AheadClock()
    schedule, opens = opening_in(clock, 2 * HOUR)
    async with lender(tmp_path, manifest(standin.url, spec_schedule=schedule), clock) as lent:
        # What ends last is named: here the pause, which outlives the opening.
        _, answer = await lent.api("POST", "/admin/pause", {"for": "3h"})
        assert answer["lending"]["by"] == "local"
        _, answer = await lent.api("POST", "/admin/resume", {})
        assert answer["lending"]["by"] == "schedule"  # a resume opens no window
        await lent.api("POST", "/admin/pause", {"for": "1h"})
        assert (await lent.status())["agent"]["lending"]["by"] == "schedule"
        await fresh(lent, clock, opens + 30)
        await lent.until(lambda up: up["lendable"])
        _, answer = await lent.api("POST", "/admin/pause", {"for": "100s"})
        assert answer["lending"]["by"] == "local"
        assert 90 <= (await asked(lent))[2] <= 100
        await fresh(lent, clock, 101)
        await lent.until(lambda up: up["lendable"])
