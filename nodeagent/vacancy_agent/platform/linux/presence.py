"""Presence on Linux: logind's sessions, the process table where it matters, and the rules in the core."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vacancy_agent.core.presence import NO_ANSWERS, HintWatch, judge, questions

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_agent.clock import Clock
    from vacancy_agent.core.facts import Presence, Seconds
    from vacancy_agent.core.settings import OwnerSettings
    from vacancy_agent.platform.linux.logind import Logind
    from vacancy_agent.platform.linux.processes import ProcessTable


class LinuxPresence:
    """A `PresenceSource`."""

    def __init__(
        self,
        owner: OwnerSettings,
        logind: Logind,
        processes: ProcessTable,
        clock: Clock,
        longest_gap: Seconds,
    ) -> None:
        """`longest_gap`: seconds between two samples past which a desktop was not being watched."""
        self._owner = owner
        self._logind = logind
        self._processes = processes
        self._clock = clock
        self._hints = HintWatch(longest_gap)

    async def read(self) -> Presence:
        """Take one sample.

        Raises:
            PresenceUnreadableError: logind cannot be read.
        """
        view = await self._logind.read()
        asked = questions(view, self._owner)
        answers = await self._processes.ask(asked) if asked else NO_ANSWERS
        missing = self._hints.observe(view.sessions, self._clock.now())
        return replace(judge(view, self._owner, answers), hint_missing=missing)

    async def watch(self, changed: Callable[[], None], sleep: Callable[[bool], None]) -> None:
        """Pass on logind's signals."""
        await self._logind.watch(changed, sleep)

    async def close(self) -> None:
        """Close the connection to the bus."""
        await self._logind.close()
