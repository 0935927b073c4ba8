"""One timer for all deadlines of a loop.

Invariant: a deadline is never early and at most two ticks late. A connection stores a float; setting or
clearing it is one attribute store, where `loop.call_later` costs a handle, a heap push and a cancelled entry
for every request. With a few hundred members a plain look at each of them four times a second costs less than
any bucket structure would.
The timer runs only while there is something to watch: an idle agent wakes for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

TICK_S = 0.25
NEVER = float("inf")


class Watched(Protocol):
    """What the wheel looks at."""

    deadline: float  # in loop time; NEVER for none
    watch: bool  # whether `on_tick` is wanted

    def on_deadline(self) -> None:
        """The deadline has passed (it was set to NEVER before this call)."""

    def on_tick(self, now: float) -> None:
        """A tick, while `watch` is set."""


class Wheel:
    """Calls members whose deadline has passed.

    Attributes:
        horizon: a loop time that is not in the past by more than the loop's own lateness: `horizon + limit`
            is a
            deadline that does not need the clock to be read.
    """

    __slots__ = ("_members", "_tick_s", "_timer", "horizon", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, tick_s: float = TICK_S) -> None:
        self.loop = loop
        self._tick_s = tick_s
        self._members: dict[Watched, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.horizon = loop.time() + tick_s

    def __len__(self) -> int:
        return len(self._members)

    def add(self, member: Watched) -> None:
        """Start to watch `member`."""
        self._members[member] = None
        if self._timer is None:
            self.horizon = self.loop.time() + self._tick_s
            self._timer = self.loop.call_later(self._tick_s, self._tick)

    def discard(self, member: Watched) -> None:
        """Stop to watch `member`; it need not be there."""
        self._members.pop(member, None)
        if not self._members and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        now = self.loop.time()
        self.horizon = now + self._tick_s
        self._timer = self.loop.call_later(self._tick_s, self._tick)
        for member in [m for m in self._members if m.deadline <= now or m.watch]:
            if member not in self._members:
                continue  # an earlier one in this tick ended it
            if member.deadline <= now:
                member.deadline = NEVER
                member.on_deadline()
            elif member.watch:
                member.on_tick(now)
