"""Holding the Lease of the active replica, or waiting for it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from vacancy_operator.api import ApiError
from vacancy_operator.core.election import MARGIN_S, Move, Rival, claim, release, step
from vacancy_operator.core.facts import Instant
from vacancy_operator.core.kinds import LEASE, Object, Ref
from vacancy_operator.log import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_operator.api import Api
    from vacancy_operator.clock import Clock
    from vacancy_operator.settings import Settings

_GIVE_BACK_S = 3.0


class Election:
    """One replica's part in it. `answered` is told after each answer of the API server."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        settings: Settings,
        turned: Callable[[bool], None],
        answered: Callable[[], None],
    ) -> None:
        """`turned` is told when this replica becomes the active one (true) or ceases to be it."""
        self._api = api
        self._clock = clock
        self._settings = settings
        self._turned = turned
        self._answered = answered
        self._held: Object | None = None
        self._rival: Rival | None = None
        self._until = Instant(float("-inf"))
        self._told = False
        self._trouble = Trouble("election")

    def active(self) -> bool:
        """Whether this replica may write now."""
        return self._clock.now().instant < self._until - MARGIN_S

    async def run(self) -> None:
        """Until cancelled; then the Lease is given back."""
        try:
            while True:
                await self.turn()
                await asyncio.sleep(
                    self._settings.lease_renew if self._held else self._settings.lease_renew / 2
                )
        finally:
            await self._give_back()

    async def turn(self) -> None:
        """Renew, take or look once."""
        try:
            await self._turn()
            self._trouble.over()
            self._answered()
        except ApiError as error:
            self._held = None
            if not error.conflict:
                self._trouble.met(error)
            if not error.outage:
                self._answered()
        active = self.active()
        if active != self._told:
            self._told = active
            self._turned(active)

    async def _turn(self) -> None:
        asked = self._clock.now()
        name = self._settings.lease_name
        lease = self._held or await self._api.get(Ref(LEASE, name))
        move, self._rival = step(lease, self._settings.identity, self._rival, asked.instant)
        if move is Move.WAIT:
            self._held = None
            return
        seconds = self._settings.lease_duration
        mine = claim(lease, name, self._api.namespace, self._settings.identity, seconds, asked)
        write = self._api.create if move is Move.CREATE else self._api.replace
        self._held = await write(LEASE, mine)
        self._until = Instant(asked.instant + seconds)

    async def _give_back(self) -> None:
        if self._held is None or not self.active():
            return
        self._until = Instant(float("-inf"))
        with contextlib.suppress(ApiError, TimeoutError):
            async with asyncio.timeout(_GIVE_BACK_S):
                await self._api.replace(LEASE, release(self._held))
