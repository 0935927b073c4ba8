"""Where the upstreams' servers listen, looked at slowly and beside the loop."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Seconds
from vacancy_agent.platform.threads import Aside, StuckError
from vacancy_agent.upstreams.listener_state import ListenerState, listener_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_agent.core.settings import Target, UpstreamSettings
    from vacancy_agent.proxy.host import Journalist

EVERY_S = 60.0
UNKNOWN_EVERY_S = 15.0
"""While a server is not there, it may be about to come."""
DEADLINE = Seconds(5.0)


class ServerListeners:
    """One for a host."""

    def __init__(self, tell: Journalist) -> None:
        """`tell` hears of a server that is found on the network, once."""
        self._tell = tell
        self._look: Aside[dict[str, ListenerState]] = Aside("listeners of the upstreams")
        self._targets: dict[str, Target] = {}
        self._states: dict[str, ListenerState] = {}
        self._changed = asyncio.Event()

    def follow(self, upstreams: Mapping[str, UpstreamSettings]) -> None:
        """Look at the servers of these upstreams, soon."""
        targets = {name: upstream.target for name, upstream in upstreams.items()}
        kept = {name for name, target in targets.items() if self._targets.get(name) == target}
        self._states = {name: state for name, state in self._states.items() if name in kept}
        self._targets = targets
        self._changed.set()

    def state(self, upstream: str) -> ListenerState:
        """As last looked at."""
        return self._states.get(upstream, ListenerState.UNKNOWN)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self._changed.clear()
            await self.look()
            waiting = any(self.state(name) is ListenerState.UNKNOWN for name in self._targets)
            try:
                async with asyncio.timeout(UNKNOWN_EVERY_S if waiting else EVERY_S):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def look(self) -> None:
        """Take one look."""
        targets = self._targets
        try:
            found = await self._look.run(partial(_states, targets), DEADLINE)
        except (StuckError, TimeoutError):
            found = dict.fromkeys(targets, ListenerState.UNKNOWN)
        if targets is not self._targets:
            return
        for name, state in found.items():
            if state is ListenerState.LISTENS_ON_NETWORK and self._states.get(name) is not state:
                self._tell("server on the network", upstream=name, port=targets[name].port)
        self._states = found


def _states(targets: Mapping[str, Target]) -> dict[str, ListenerState]:
    return {name: listener_state(target) for name, target in targets.items()}
