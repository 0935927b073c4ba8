"""How a platform tells whether the owner is at the machine, and the answers that need no machine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from vacancy_agent.core.facts import Evidence, Presence

if TYPE_CHECKING:
    from collections.abc import Callable


class PresenceUnreadableError(Exception):
    """The sample failed as a whole; the message says why, for people."""


class PresenceSource(Protocol):
    """One way to look for the owner."""

    async def read(self) -> Presence:
        """Take one sample.

        Raises:
            PresenceUnreadableError: what was read does not make a whole sample.
        """
        ...

    async def watch(self, changed: Callable[[], None], sleep: Callable[[bool], None]) -> None:
        """Run for ever; tell when a sample is worth taking, and before (True) and after (False) a suspend."""
        ...

    async def close(self) -> None:
        """Drop what is held open; a later `read` opens it again."""
        ...


class FixedPresence:
    """A presence that never changes: headless hosts, and platforms without a backend."""

    def __init__(self, evidence: Evidence, why: str) -> None:
        self._presence = Presence(evidence, why)

    async def read(self) -> Presence:
        """Return the fixed presence."""
        return self._presence

    async def watch(self, changed: Callable[[], None], sleep: Callable[[bool], None]) -> None:
        """Wait for ever: nothing changes."""
        del changed, sleep
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Do nothing: nothing is open."""


HEADLESS = FixedPresence(Evidence.ABSENT, "the host is declared headless")
UNSUPPORTED = FixedPresence(Evidence.UNSUPPORTED, "presence cannot be read on this platform")
"""macOS: does not refuse; the capacity checks alone protect the owner."""
UNREADABLE = FixedPresence(
    Evidence.UNCLEAR, "presence cannot be read on this platform yet, so nothing is lent"
)
"""A platform whose backend is still to come refuses: the owner may well be there."""
