"""A08: a desktop never sets its idle hint (KDE on Wayland), so its owner never seems to be away.

Seen as languitar/autosuspend#302 and super-productivity/super-productivity#5554. Right: it refuses, which is
safe; after an hour a condition says so and what to do; a lock lends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.clock import AheadClock
from standins.desks import lent_desk, looked_again, presence_signal

if TYPE_CHECKING:
    from pathlib import Path

    from lab.logind_lab import LogindLab
    from standins.agents import Lender
    from standins.openai_server import OpenAiStandin

pytestmark = [pytest.mark.component, pytest.mark.logind]
STEP = 239.0
"""Seconds that a watch may have between two looks: four polls of a minute."""


async def watch_for(lent: Lender, clock: AheadClock, seconds: float) -> None:
    for _ in range(int(seconds / STEP)):
        clock.advance(STEP)
        await looked_again(lent)


async def test_it_refuses_tells_after_an_hour_and_lends_when_locked(
    standin: OpenAiStandin, logind_lab: LogindLab, tmp_path: Path
) -> None:
    clock = AheadClock()
    async with lent_desk(tmp_path, standin, logind_lab, clock, interval="60s") as lent:
        desk = await logind_lab.create(type="wayland", seat="seat0", desktop="KDE")
        await looked_again(lent)
        await watch_for(lent, clock, 3000)
        assert (await presence_signal(lent))[0] == "True", "not an hour yet"
        await watch_for(lent, clock, 1200)
        status, reason, message = await presence_signal(lent)
        assert (status, reason) == ("False", "IdleHintNeverReported")
        assert "lock" in message
        clock.advance(11 * 3600)
        await looked_again(lent)
        assert (await presence_signal(lent))[1] == "IdleHintNeverReported"
        async with lent.chat() as got:
            assert (got.status, got.headers["X-Vacancy-Reason"]) == (503, "owner_active")
        await logind_lab.hint(desk, locked=True)
        await looked_again(lent)
        await lent.agent.collectors.fresh(["ram"])
        async with lent.chat() as got:
            assert got.status == 200


async def test_a_desktop_that_has_hinted_once_is_not_accused(
    standin: OpenAiStandin, logind_lab: LogindLab, tmp_path: Path
) -> None:
    clock = AheadClock()
    async with lent_desk(tmp_path, standin, logind_lab, clock, interval="60s") as lent:
        desk = await logind_lab.create(type="wayland", seat="seat0", desktop="KDE")
        await logind_lab.hint(desk, idle=True)
        await logind_lab.hint(desk, idle=False)
        await looked_again(lent)
        await watch_for(lent, clock, 4000)
        assert (await presence_signal(lent))[0] == "True"
