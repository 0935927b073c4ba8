from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from dbus_fast import Message, MessageType
from dbus_fast.aio import MessageBus

from standins.until import until
from vacancy_agent.clock import SystemClock
from vacancy_agent.core.facts import Seconds
from vacancy_agent.platform.linux.logind import Logind
from vacancy_agent.platform.presence import PresenceUnreadableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from lab.logind_lab import LogindLab

pytestmark = [pytest.mark.component, pytest.mark.logind]


class Heard:
    def __init__(self) -> None:
        self.changes = 0
        self.sleeps: list[bool] = []

    def changed(self) -> None:
        self.changes += 1


@asynccontextmanager
async def watching(deadline: float = 5.0) -> AsyncIterator[tuple[Logind, Heard]]:
    logind, heard = Logind(SystemClock(), deadline=Seconds(deadline)), Heard()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(logind.watch(heard.changed, heard.sleeps.append))
        try:
            yield logind, heard
        finally:
            task.cancel()
            await logind.close()


async def test_an_empty_machine(logind_lab: LogindLab) -> None:
    async with watching() as (logind, _):
        view = await logind.read()
    assert view.sessions == ()
    assert not view.idle_inhibited
    assert not view.sleeping


async def test_what_a_session_shows(logind_lab: LogindLab) -> None:
    desk = await logind_lab.create(type="wayland", seat="seat0")
    await logind_lab.create(type="tty", tty="pts/7", remote=True)
    async with watching() as (logind, _):
        first, second = sorted((await logind.read()).sessions, key=lambda s: s.type)
        assert (first.type, first.remote, first.seat, first.cls) == ("tty", True, "", "user")
        assert (second.key, second.type, second.seat, second.uid) == (desk, "wayland", "seat0", 5)
        assert second.active
        assert not second.locked
        assert (second.idle_for, second.ever_hinted) == (None, False)
        assert second.leader == logind_lab._sessions[desk].leader.pid


async def test_hints_come_and_go(logind_lab: LogindLab) -> None:
    desk = await logind_lab.create(seat="seat0")
    async with watching() as (logind, _):
        await logind_lab.hint(desk, locked=True, idle=True)
        (session,) = (await logind.read()).sessions
        assert session.locked
        assert session.idle_for is not None
        assert 0 <= session.idle_for < 60
        await logind_lab.hint(desk, locked=False, idle=False)
        (session,) = (await logind.read()).sessions
        assert not session.locked
        assert (session.idle_for, session.ever_hinted) == (None, True)


async def test_an_inhibitor(logind_lab: LogindLab) -> None:
    async with watching() as (logind, _):
        film = await logind_lab.inhibit_idle()
        assert (await logind.read()).idle_inhibited
        logind_lab.release(film)
        for _ in range(500):
            if not (await logind.read()).idle_inhibited:
                return
            await asyncio.sleep(0.01)
        pytest.fail("the inhibitor was released, and still inhibits")


async def test_one_connection_serves_every_read(logind_lab: LogindLab) -> None:
    async with watching() as (logind, _):
        await logind.read()
        bus = logind._bus
        for _ in range(20):
            await logind.read()
        assert logind._bus is bus


async def test_every_change_is_heard(logind_lab: LogindLab) -> None:
    async with watching() as (logind, heard):
        await logind.read()

        async def heard_after(change: object) -> None:
            before = heard.changes
            await change  # type: ignore[misc]
            await until(lambda: heard.changes > before)

        await heard_after(_login(logind_lab))
        (desk,) = await logind_lab.sessions()
        await asyncio.sleep(0.1)  # the login's own signals are over
        await heard_after(logind_lab.hint(desk, locked=True))
        await heard_after(logind_lab.hint(desk, idle=True))
        await heard_after(logind_lab.inhibit_idle())
        await heard_after(logind_lab.logout(desk))
    assert heard.sleeps == []


async def _login(lab: LogindLab) -> None:
    await lab.create(seat="seat0")


async def test_sleep_is_heard_before_and_after(logind_lab: LogindLab) -> None:
    async with watching() as (logind, heard):
        await logind.read()
        await logind_lab.sleep()
        await until(lambda: heard.sleeps == [True])
        assert (await logind.read()).sleeping
        logind_lab.wake()
        await until(lambda: heard.sleeps == [True, False])
        assert not (await logind.read()).sleeping
    assert heard.sleeps == [True, False]


@pytest.mark.parametrize(
    ("interface", "member", "signature", "body"),
    [
        ("org.freedesktop.login1.Manager", "PrepareForSleep", "b", [True]),
        ("org.freedesktop.login1.Manager", "PrepareForSleep", "", []),
        ("org.freedesktop.DBus.Properties", "PropertiesChanged", "s", ["x"]),
        ("org.freedesktop.DBus", "NameOwnerChanged", "sss", ["org.freedesktop.login1", "", ":1.999"]),
    ],
)
async def test_a_signal_of_somebody_else_is_not_loginds(
    logind_lab: LogindLab, interface: str, member: str, signature: str, body: list[object]
) -> None:
    async with watching() as (logind, heard):
        await logind.read()
        assert logind._bus is not None
        heard.changes = 0
        stranger = await MessageBus(bus_address=logind_lab.address).connect()
        signal = Message(
            message_type=MessageType.SIGNAL,
            destination=logind._bus.unique_name,
            path="/org/freedesktop/login1",
            interface=interface,
            member=member,
            signature=signature,
            body=body,
        )
        for _ in range(20):
            await stranger.send(signal)
        await logind.read()
        assert heard.sleeps == []
        assert heard.changes == 0
        stranger.disconnect()
        await stranger.wait_for_disconnect()
        await logind_lab.create(seat="seat0")
        await until(lambda: heard.changes > 0)


async def test_a_sleep_whose_signals_were_missed_is_told_by_the_poll(logind_lab: LogindLab) -> None:
    await logind_lab.sleep()
    async with watching() as (logind, heard):
        await asyncio.sleep(0)
        await logind.read()
        assert heard.sleeps == [True]


async def test_a_session_that_ends_between_list_and_question_is_gone(
    logind_lab: LogindLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await logind_lab.create(seat="seat0")
    other = await logind_lab.create(uid=1, type="tty", remote=True)
    real = MessageBus.call

    async def call(bus: MessageBus, message: Message) -> Message | None:
        if message.member == "GetAll" and message.path == logind_lab._sessions[other].path:
            message = Message(
                destination=message.destination,
                path=f"{message.path}9",
                interface=message.interface,
                member="GetAll",
                signature="s",
                body=message.body,
            )
        return await real(bus, message)

    monkeypatch.setattr(MessageBus, "call", call)
    async with watching() as (logind, _):
        view = await logind.read()
        assert [session.key for session in view.sessions] == [desk]
        assert logind._bus is not None


@pytest.mark.parametrize("member", ["GetAll", "ListSessions", "Get"])
async def test_any_other_error_makes_the_sample_unknown_and_drops_the_connection(
    logind_lab: LogindLab, monkeypatch: pytest.MonkeyPatch, member: str
) -> None:
    await logind_lab.create(seat="seat0")
    real = MessageBus.call

    async def call(bus: MessageBus, message: Message) -> Message | None:
        reply = await real(bus, message)
        if message.member != member or reply is None:
            return reply
        return Message(
            message_type=MessageType.ERROR,
            error_name="org.freedesktop.DBus.Error.AccessDenied",
            reply_serial=1,
            signature="s",
            body=["user somebody may not"],
        )

    async with watching() as (logind, _):
        with monkeypatch.context() as patch:
            patch.setattr(MessageBus, "call", call)
            with pytest.raises(PresenceUnreadableError, match="AccessDenied") as caught:
                await logind.read()
        assert "somebody" not in str(caught.value)
        assert logind._bus is None
        assert len((await logind.read()).sessions) == 1


async def test_a_stopped_logind_meets_the_deadline_and_recovers(logind_lab: LogindLab) -> None:
    await logind_lab.create(seat="seat0")
    async with watching(deadline=0.3) as (logind, _):
        await logind.read()
        logind_lab.freeze()
        began = time.monotonic()
        for _ in range(2):
            with pytest.raises(PresenceUnreadableError, match="does not answer"):
                await logind.read()
        assert time.monotonic() - began < 10
        logind_lab.thaw()
        assert len((await logind.read()).sessions) == 1


async def test_a_stopped_bus_meets_the_deadline_however_often_it_is_tried(logind_lab: LogindLab) -> None:
    async with watching(deadline=0.02) as (logind, _):
        logind_lab.freeze_bus()
        longest = 0.0
        for _ in range(150):  # more than the daemon's backlog
            began = time.monotonic()
            with pytest.raises(PresenceUnreadableError):
                await logind.read()
            longest = max(longest, time.monotonic() - began)
        assert longest < 2
        logind_lab.thaw()


async def test_a_dead_bus_is_heard_of_at_once_and_stays_an_error(logind_lab: LogindLab) -> None:
    async with watching() as (logind, heard):
        await logind.read()
        before = heard.changes
        logind_lab.kill_bus()
        await until(lambda: heard.changes > before)
        for _ in range(3):
            with pytest.raises(PresenceUnreadableError, match="bus cannot be used"):
                await logind.read()


async def test_a_machine_without_a_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("unix:path=/nonexistent/bus", "nonsense"):
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
        with pytest.raises(PresenceUnreadableError, match="bus cannot be used"):
            await Logind(SystemClock()).read()


async def test_signals_are_passed_on_within_milliseconds(logind_lab: LogindLab) -> None:
    desk = await logind_lab.create(seat="seat0")
    async with watching() as (logind, heard):
        await logind.read()
        delays = []
        for n in range(20):
            before = heard.changes
            began = time.perf_counter()
            await logind_lab.hint(desk, locked=n % 2 == 0)
            await until(lambda before=before: heard.changes > before)  # type: ignore[misc]
            delays.append(time.perf_counter() - began)
    assert sorted(delays)[10] < 0.5


@pytest.mark.parametrize("sessions", [1, 3, 13])
async def test_what_a_read_costs(logind_lab: LogindLab, sessions: int) -> None:
    for _ in range(sessions):
        await logind_lab.create()
    async with watching() as (logind, _):
        await logind.read()
        took = []
        for _ in range(100):
            began = time.perf_counter()
            assert len((await logind.read()).sessions) == sessions
            took.append(time.perf_counter() - began)
    assert sorted(took)[50] < 0.5
