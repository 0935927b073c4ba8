"""What systemd-logind shows of the login sessions, over one connection to the system bus.

Invariant: a sample is whole or it is an error. Of a single session, only "it is gone" is an answer; anything
else (a refusal, a silence, a dead bus) could hide the owner. A connection that failed once is never used
again: after its socket died, its replies are errors of other calls. Rejected: a subprocess per poll, and
trusting the signals alone, of which a restarted logind owes us none.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, TypeVar

from dbus_fast import BusType, Message, MessageFlag, MessageType
from dbus_fast.aio import MessageBus

from vacancy_agent.core.facts import Seconds
from vacancy_agent.core.parse.logind import LogindPropertyError, inhibits_idle, parse_session
from vacancy_agent.core.presence import LoginView, Session
from vacancy_agent.platform.presence import PresenceUnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vacancy_agent.clock import Clock

T = TypeVar("T")
LOGIN1 = "org.freedesktop.login1"
MANAGER_PATH = "/org/freedesktop/login1"
MANAGER = "org.freedesktop.login1.Manager"
SESSION = "org.freedesktop.login1.Session"
PROPERTIES = "org.freedesktop.DBus.Properties"
DBUS = "org.freedesktop.DBus"
GONE = "org.freedesktop.DBus.Error.UnknownObject"
RULES = (
    f"type='signal',sender='{LOGIN1}',interface='{PROPERTIES}',member='PropertiesChanged',path_namespace='{MANAGER_PATH}'",
    f"type='signal',sender='{LOGIN1}',interface='{MANAGER}',path='{MANAGER_PATH}'",
    f"type='signal',sender='{DBUS}',interface='{DBUS}',member='NameOwnerChanged',arg0='{LOGIN1}'",
)
DEADLINE = Seconds(2.0)
"""A stopped logind sends no error, ever. A healthy one answers within milliseconds."""


class _CallError(Exception):
    """The other side answered with an error."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name


class Logind:
    """Reads logind, and hears from it. Honours DBUS_SYSTEM_BUS_ADDRESS."""

    def __init__(self, clock: Clock, *, deadline: Seconds = DEADLINE) -> None:
        self._clock = clock
        self._deadline = deadline
        self._bus: MessageBus | None = None
        self._connected = asyncio.Event()
        self._sleeping = False
        self._logind: str | None = None
        """The name on the bus of the connection that logind has: only its signals are believed."""
        self._on_change: Callable[[], None] = _nothing
        self._on_sleep: Callable[[bool], None] = _nothing

    async def read(self) -> LoginView:
        """Take one sample.

        Raises:
            PresenceUnreadableError: it is not whole; the connection has been dropped.
        """
        try:
            async with asyncio.timeout(self._deadline):
                view = await self._read()
        except Exception as error:  # whatever a bus or its library can raise, the answer is: unknown
            self._drop()
            raise PresenceUnreadableError(_why(error)) from error
        self._note_sleep(view.sleeping)
        return view

    async def watch(self, changed: Callable[[], None], sleep: Callable[[bool], None]) -> None:
        """Pass on what logind says, and when the bus goes away, for ever."""
        self._on_change, self._on_sleep = changed, sleep
        while True:
            await self._connected.wait()
            bus = self._bus
            if bus is None:
                self._connected.clear()
                continue
            # Why it ended is told by the next read. Shielded: to be cancelled here must not cancel the future
            # that `close` waits for.
            with contextlib.suppress(Exception):
                await asyncio.shield(bus.wait_for_disconnect())  # type: ignore[no-untyped-call]  # untyped there
            if bus is self._bus:
                self._drop()
                changed()

    async def close(self) -> None:
        """Close the connection and wait until it is closed."""
        bus = self._bus
        self._drop()
        if bus is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(1.0):
                    await bus.wait_for_disconnect()  # type: ignore[no-untyped-call]  # untyped there

    async def _read(self) -> LoginView:
        bus = await self._connection()
        awake = self._clock.awake()
        ((rows,), inhibited, sleeping) = await asyncio.gather(
            _call(bus, MANAGER_PATH, MANAGER, "ListSessions"),
            _property(bus, "BlockInhibited", str),
            _property(bus, "PreparingForSleep", bool),
        )
        sessions = await asyncio.gather(*(_session(bus, row[0], row[4], awake) for row in rows))
        return LoginView(
            tuple(session for session in sessions if session is not None),
            idle_inhibited=inhibits_idle(inhibited),
            sleeping=sleeping,
        )

    async def _connection(self) -> MessageBus:
        if self._bus is not None and self._bus.connected:
            return self._bus
        self._drop()
        bus = await MessageBus(bus_type=BusType.SYSTEM).connect()
        self._bus = bus
        bus.add_message_handler(self._hear)
        for rule in RULES:
            await _ask_bus(bus, "AddMatch", rule)
        self._logind = await _name_of_logind(bus)
        self._connected.set()
        return bus

    def _drop(self) -> None:
        bus, self._bus = self._bus, None
        self._connected.clear()
        if bus is not None:
            with contextlib.suppress(Exception):  # it may be dead already, in any of several ways
                bus.disconnect()

    def _hear(self, message: Message) -> None:
        """A signal. Whoever is on the bus may send one that looks like logind's, whatever our rules say."""
        if message.message_type is not MessageType.SIGNAL:
            return
        if message.sender == DBUS and message.member == "NameOwnerChanged" and message.body[0] == LOGIN1:
            self._logind = message.body[2]
        elif message.sender != self._logind or message.interface not in (MANAGER, PROPERTIES):
            return
        elif message.interface == MANAGER and message.member == "PrepareForSleep":
            self._note_sleep(bool(message.body[0]))
        self._on_change()

    def _note_sleep(self, sleeping: bool) -> None:
        if sleeping is not self._sleeping:
            self._sleeping = sleeping
            self._on_sleep(sleeping)


async def _session(bus: MessageBus, key: str, path: str, awake: Seconds) -> Session | None:
    try:
        (properties,) = await _call(bus, path, PROPERTIES, "GetAll", "s", [SESSION])
    except _CallError as error:
        if error.name == GONE:  # it ended between the list and this question
            return None
        raise
    return parse_session(key, {name: variant.value for name, variant in properties.items()}, awake)


async def _ask_bus(bus: MessageBus, member: str, argument: str) -> Sequence[Any]:
    return await _call(bus, "/org/freedesktop/DBus", DBUS, member, "s", [argument], destination=DBUS)


async def _name_of_logind(bus: MessageBus) -> str | None:
    try:
        (name,) = await _ask_bus(bus, "GetNameOwner", LOGIN1)
    except _CallError:  # it does not run; the bus tells when it does
        return None
    return str(name)


async def _property(bus: MessageBus, name: str, kind: type[T]) -> T:
    (variant,) = await _call(bus, MANAGER_PATH, PROPERTIES, "Get", "ss", [MANAGER, name])
    if type(variant.value) is not kind:
        raise LogindPropertyError(f"logind's property {name} is not as documented")
    return variant.value


async def _call(
    bus: MessageBus,
    path: str,
    interface: str,
    member: str,
    signature: str = "",
    body: Sequence[object] = (),
    *,
    destination: str = LOGIN1,
) -> Sequence[Any]:
    """Call a method, without having the bus start a service that is not there."""
    reply = await bus.call(
        Message(
            destination=destination,
            path=path,
            interface=interface,
            member=member,
            signature=signature,
            body=list(body),
            flags=MessageFlag.NO_AUTOSTART,
        )
    )
    if reply is None:
        raise ConnectionError("the bus closed the connection")
    if reply.message_type is MessageType.ERROR:
        raise _CallError(reply.error_name or "", str(reply.body[0]) if reply.body else "")
    return reply.body


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "logind does not answer"
    if isinstance(error, LogindPropertyError):
        return str(error)
    if isinstance(error, _CallError):
        return f"logind refuses to answer ({error.name})"
    what = f"the system bus cannot be used ({type(error).__name__})"
    return f"{what}: presence needs systemd-logind and D-Bus, or `presence: headless` where nobody works"


def _nothing(*_: object) -> None:
    """Nobody listens yet."""
