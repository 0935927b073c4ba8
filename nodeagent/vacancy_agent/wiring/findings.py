"""The conditions follow what they rest on: looked at soon after it changed, and told when they change."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from vacancy_agent.core.conditions import (
    Status,
    lendable_finding,
    presence_finding,
    reclaimed_finding,
)
from vacancy_agent.core.lendable import host_lendable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vacancy_agent.clock import Clock
    from vacancy_agent.core.board import Board
    from vacancy_agent.core.conditions import Conditions, Finding
    from vacancy_agent.proxy.host import Journalist

LOOK_S = 0.05
"""A condition follows what it rests on within this time."""


class Findings:
    """One for an agent."""

    def __init__(
        self,
        conditions: Conditions,
        board: Board,
        claims: Callable[[], Mapping[str, bool | None]],
        clock: Clock,
        tell: Journalist,
        bound: Callable[[str], bool] = lambda _name: True,
    ) -> None:
        """`claims`: what each upstream that was asked to unload showed; `bound`: whether a proxy listens."""
        self._bound = bound
        self._conditions = conditions
        self._board = board
        self._claims = claims
        self._clock = clock
        self._tell = tell
        self._wanted = asyncio.Event()
        self.changed: Callable[[], None] | None = None
        """Set by whoever passes the conditions on."""

    def soon(self) -> None:
        """Something that a condition rests on may have changed: look soon.

        Not at once: a sample is taken after every job, and conditions are for people and the cluster.
        """
        self._wanted.set()

    async def run(self) -> None:
        """Look whenever it is wanted, until cancelled."""
        while True:
            await self._wanted.wait()
            await asyncio.sleep(LOOK_S)
            self.look()

    def look(self) -> None:
        """Find every condition that follows from the board."""
        self._wanted.clear()
        board, now, wall = self._board, self._clock.now(), self._clock.wall()
        self.find(lendable_finding(host_lendable(board, now, wall, self._bound)))
        self.find(presence_finding(board, now))
        self.find(reclaimed_finding(self._claims()))

    def find(self, finding: Finding | None) -> None:
        """Take over one finding; told if it changes anything."""
        if finding is None:
            return
        changed = self._conditions.set(finding, self._clock.wall())
        if changed is not None:
            facts = {"type": changed.type.value, "status": changed.status.value, "reason": changed.reason}
            if changed.status is not Status.TRUE:
                facts["why"] = changed.message
            self._tell("condition", **facts)
            if self.changed is not None:
                self.changed()
