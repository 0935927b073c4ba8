"""The cases from the field, against a real logind."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from standins.clock import FakeClock
from vacancy_agent.clock import SystemClock
from vacancy_agent.core.facts import Evidence, Seconds
from vacancy_agent.core.settings import OwnerSettings
from vacancy_agent.platform.linux.logind import Logind
from vacancy_agent.platform.linux.presence import LinuxPresence
from vacancy_agent.platform.linux.processes import ProcessTable
from vacancy_agent.platform.presence import PresenceUnreadableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from lab.logind_lab import LogindLab
    from vacancy_agent.clock import Clock

pytestmark = [pytest.mark.component, pytest.mark.logind]
AT_ONCE = OwnerSettings(idle_after=Seconds(0.0))
DAEMON_UID = 1


@asynccontextmanager
async def presence(
    owner: OwnerSettings = AT_ONCE, clock: Clock | None = None, deadline: float = 5.0
) -> AsyncIterator[LinuxPresence]:
    ticking = clock or SystemClock()
    logind = Logind(SystemClock(), deadline=Seconds(deadline))
    source = LinuxPresence(owner, logind, ProcessTable(owner.processes), ticking, Seconds(15.0))
    try:
        yield source
    finally:
        await source.close()


async def test_an_owner_who_comes_locks_returns_idles_and_leaves(logind_lab: LogindLab) -> None:
    async with presence() as source:
        seen = [(await source.read()).evidence]
        desk = await logind_lab.create(seat="seat0")
        seen.append((await source.read()).evidence)
        for hints in ({"locked": True}, {"locked": False}, {"idle": True}, {"idle": False}):
            await logind_lab.hint(desk, **hints)
            seen.append((await source.read()).evidence)
        await logind_lab.logout(desk)
        seen.append((await source.read()).evidence)
    absent, present = Evidence.ABSENT, Evidence.PRESENT
    assert seen == [absent, present, absent, present, absent, present, absent]


async def test_idle_for_less_than_asked_is_present(logind_lab: LogindLab) -> None:
    desk = await logind_lab.create(seat="seat0")
    await logind_lab.hint(desk, idle=True)
    async with presence(OwnerSettings(idle_after=Seconds(600.0))) as source:
        assert (await source.read()).evidence is Evidence.PRESENT


async def test_ssh_alone_is_nobody_at_the_machine(logind_lab: LogindLab) -> None:
    await logind_lab.create(type="tty", tty="pts/7", remote=True, desktop="")
    async with presence() as source:
        assert (await source.read()).evidence is Evidence.ABSENT


async def test_a_desktop_behind_another_login_is_not_in_front(logind_lab: LogindLab) -> None:
    await logind_lab.create(seat="seat0")
    greeter = await logind_lab.create(uid=DAEMON_UID, cls="greeter", seat="seat0")
    async with presence() as source:
        await logind_lab.activate(greeter)
        assert (await source.read()).evidence is Evidence.ABSENT


async def test_a_remote_desktop_has_no_seat_and_counts(logind_lab: LogindLab) -> None:
    await logind_lab.create(type="wayland", remote=True)
    async with presence() as source:
        assert (await source.read()).evidence is Evidence.PRESENT


async def test_a_film_holds_an_idle_desktop(logind_lab: LogindLab) -> None:
    desk = await logind_lab.create(seat="seat0")
    await logind_lab.hint(desk, idle=True)
    await logind_lab.inhibit_idle()
    async with presence() as source:
        assert (await source.read()).evidence is Evidence.PRESENT


async def test_a_compositor_started_from_a_console_is_unclear(logind_lab: LogindLab) -> None:
    """Case A07: the terminal has not been touched for hours, and somebody plays."""
    console = await logind_lab.create(type="tty", seat="seat0", desktop="", runs="sway")
    async with presence() as source:
        await _until_it_runs(source)
        seen = await source.read()
        assert seen.evidence is Evidence.UNCLEAR
        assert "console" in seen.why
        await logind_lab.hint(console, locked=True)
        assert (await source.read()).evidence is Evidence.ABSENT
        await logind_lab.hint(console, locked=False)
        assert (await source.read()).evidence is Evidence.UNCLEAR
        await logind_lab.logout(console)
        assert (await source.read()).evidence is Evidence.ABSENT


async def _until_it_runs(source: LinuxPresence) -> None:
    for _ in range(500):
        if (await source.read()).evidence is not Evidence.PRESENT:
            return
        await asyncio.sleep(0.01)


async def test_a_console_without_a_compositor_is_somebody(logind_lab: LogindLab) -> None:
    await logind_lab.create(type="tty", seat="seat0", desktop="", runs="vim")
    async with presence() as source:
        assert (await source.read()).evidence is Evidence.PRESENT


async def test_a_desktop_that_never_sets_its_hint_is_reported_after_an_hour(logind_lab: LogindLab) -> None:
    """Case A08: Plasma on Wayland, twelve hours."""
    desk = await logind_lab.create(seat="seat0", desktop="KDE")
    clock = FakeClock()
    async with presence(clock=clock) as source:
        reported = []
        for minute in range(12 * 60):
            for _ in range(4 if minute < 62 else 1):
                seen = await source.read()
                assert seen.evidence is Evidence.PRESENT
                clock.advance(15)
            reported.append(seen.hint_missing)
        assert reported.index(True) in (59, 60)
        assert all(reported[60:])
        await logind_lab.hint(desk, locked=True)
        assert (await source.read()).evidence is Evidence.ABSENT
        await logind_lab.hint(desk, locked=False, idle=True)
        assert not (await source.read()).hint_missing


async def test_a_game_from_the_owners_list_holds_an_idle_desktop(logind_lab: LogindLab) -> None:
    owner = OwnerSettings(idle_after=Seconds(0.0), processes=("Game.exe",))
    quiet = OwnerSettings(idle_after=Seconds(0.0), processes=("other",))
    desk = await logind_lab.create(seat="seat0", runs="game.exe")
    await logind_lab.hint(desk, idle=True)
    async with presence(owner) as source, presence(quiet) as other:
        for _ in range(500):
            seen = await source.read()
            if seen.evidence is Evidence.PRESENT:
                break
            await asyncio.sleep(0.01)
        assert "list" in seen.why
        assert "game" not in seen.why.lower()
        assert (await other.read()).evidence is Evidence.ABSENT
        await logind_lab.hint(desk, locked=True)
        assert (await source.read()).evidence is Evidence.ABSENT


async def test_nobodys_name_is_told(logind_lab: LogindLab) -> None:
    await logind_lab.create(seat="seat0")
    async with presence() as source:
        assert "games" not in repr(await source.read())


async def test_a_stopped_logind_is_unreadable(logind_lab: LogindLab) -> None:
    async with presence(deadline=0.2) as source:
        logind_lab.freeze()
        with pytest.raises(PresenceUnreadableError):
            await source.read()
