"""A llama-server's own account of what it does.

Invariant: a look never changes what it looks at. `/slots` wakes a server that sleeps and makes a router load
a model, so `/props` is read first. And a llama-server notices that a non-streaming client left only when its
result queue was silent for a second: asking for `/slots` more often keeps the abandoned work running (seen
on several builds), so all looks at one server go through one `LlamaCpp`, at most one in 1.5 s.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vacancy_agent.core.facts import Instant, Seconds
from vacancy_agent.upstreams.ask import AskError
from vacancy_agent.upstreams.waiting import wait_until

if TYPE_CHECKING:
    from vacancy_agent.clock import Clock
    from vacancy_agent.upstreams.ask import Answer, ServerClient

SPACING = Seconds(1.5)
"""Between two looks, and between a client's leaving and the first look that can prove anything."""
_OK, _UNAUTHORIZED, _NO_SUCH_ROUTE, _NOT_SUPPORTED, _LOADING = 200, 401, 404, 501, 503


@dataclass(frozen=True, slots=True)
class SlotsIdle:
    """All `total` slots are idle."""

    total: int


@dataclass(frozen=True, slots=True)
class SlotsBusy:
    """`busy` of `total` slots work."""

    busy: int
    total: int


@dataclass(frozen=True, slots=True)
class NoSlots:
    """The server was started with `--no-slots`, or is older than the endpoint."""


@dataclass(frozen=True, slots=True)
class Asleep:
    """The server has unloaded its model after a time without work: idle, and not resident."""


@dataclass(frozen=True, slots=True)
class Router:
    """The server hands requests on to servers of its own; its `/slots` would start one."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """No usable answer: not running, loading its model, refusing our key."""

    why: str


Slots = SlotsIdle | SlotsBusy | NoSlots | Asleep | Router | Unreachable


@dataclass(frozen=True, slots=True)
class Look:
    """What one look showed. `began`: just before the read that shows it was sent."""

    slots: Slots
    began: Instant


class LlamaCpp:
    """The one place through which the agent looks at one llama-server."""

    def __init__(self, server: ServerClient, clock: Clock) -> None:
        """`server` is asked; nothing is sent before the first look."""
        self._server = server
        self._clock = clock
        self._turn = asyncio.Lock()
        self.last: Look | None = None
        """The newest look, for whoever needs no newer one."""
        self._ended: Instant | None = None

    async def look(self, not_before: Instant) -> Look:
        """A look that began at or after `not_before`: the newest one if it did, else another.

        Waits for `not_before`, and for 1.5 s since the look before.
        """
        async with self._turn:
            if self.last is not None and self.last.began >= not_before:
                return self.last
            earliest = not_before if self._ended is None else max(not_before, self._ended + SPACING)
            await wait_until(self._clock, Instant(earliest))
            self.last = await self._read()
            self._ended = self._clock.now()
            return self.last

    async def _read(self) -> Look:
        began = self._clock.now()
        try:
            found = read_props(await self._server.get("/props"))
            if found is not None:
                return Look(found, began)
            began = self._clock.now()
            return Look(read_slots(await self._server.get("/slots")), began)
        except AskError as error:
            return Look(Unreachable(str(error)), began)


def read_props(answer: Answer) -> Slots | None:
    """What `/props` settles on its own; None: the server is awake and has slots of its own."""
    if answer.status == _NO_SUCH_ROUTE:
        return None  # builds before the endpoint neither sleep nor route
    if answer.status != _OK:
        return _refused(answer)
    props = answer.json()
    if not isinstance(props, dict):
        return Unreachable("its /props is no object")
    if props.get("role") == "router":
        return Router()
    return Asleep() if props.get("is_sleeping") is True else None


def read_slots(answer: Answer) -> Slots:
    """What `/slots` shows; anything that is not exactly understood is not idle."""
    if answer.status in (_NOT_SUPPORTED, _NO_SUCH_ROUTE):
        return NoSlots()
    if answer.status != _OK:
        return _refused(answer)
    slots = answer.json()
    if not isinstance(slots, list) or not slots or not all(_is_slot(slot) for slot in slots):
        return Unreachable("its /slots cannot be read")
    busy = sum(slot["is_processing"] for slot in slots)
    return SlotsBusy(busy, len(slots)) if busy else SlotsIdle(len(slots))


def _is_slot(slot: Any) -> bool:
    return isinstance(slot, dict) and isinstance(slot.get("is_processing"), bool)


def _refused(answer: Answer) -> Unreachable:
    if answer.status == _UNAUTHORIZED:
        return Unreachable("refuses the key: set credentialSecretRef to its --api-key")
    if answer.status == _LOADING:
        return Unreachable("loads its model")
    return Unreachable(f"answered {answer.status}")
