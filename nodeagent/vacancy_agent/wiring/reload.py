"""The manifest may change while the agent runs: what is valid is applied, what is not changes nothing.

A file that is gone just now (an editor replaces it, a volume is mounted anew) changes nothing either, but one
that stays away is told: the next start would fail. What was read is what is judged: reading twice would judge
one content and remember another.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from vacancy_agent.store.errors import StoreError
from vacancy_agent.wiring import secret_files
from vacancy_agent.wiring.config import RefusedError, content_again, why_unreadable
from vacancy_agent.wiring.contract_apart import JudgeError, judge

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Protocol

    from vacancy_agent.store.state import StateDir, Tokens
    from vacancy_agent.wiring.config import Configuration

    class Reconfigurable(Protocol):
        """What takes a configuration: the agent."""

        async def apply(self, config: Configuration) -> None:
            """Run by it."""
            ...

        def refuse_config(self, errors: list[str]) -> None:
            """Say what is wrong with it."""
            ...


LOOK_S = 2.0
"""Between two looks at the manifest."""
PATIENCE = 3
"""Looks in a row that find no manifest before that is told."""


class Reload:
    """Watches one manifest."""

    def __init__(self, manifest: Path, content: bytes, state: StateDir, tokens: Tokens) -> None:
        """`content` is what the agent was started with."""
        self.state = state
        self.tokens = tokens
        self.asked = asyncio.Event()
        """Set it to have the manifest and its secrets read now, changed or not."""
        self._manifest = manifest
        self._content = content
        self._misses = 0
        """Looks in a row that could not read it."""
        self._waiting: Configuration | None = None
        """A valid configuration that could not be applied for what may yet come: a secret, space."""

    async def run(self, agent: Reconfigurable) -> None:
        """Keep the agent up to date until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self.asked.wait()
            asked = self.asked.is_set()
            self.asked.clear()
            await self._look(agent, asked=asked)

    async def _look(self, agent: Reconfigurable, *, asked: bool) -> None:
        content = content_again(self._manifest)
        if content is None:
            self._miss(agent)
        else:
            self._misses = 0
        if content is not None and (asked or content != self._content):
            self._content, self._waiting = content, None
            try:
                # Beside the loop: it takes as long as Python takes to start.
                self._waiting = await asyncio.to_thread(judge, content, self.tokens)
            except RefusedError as error:
                agent.refuse_config(error.errors)
            except JudgeError as error:
                agent.refuse_config([str(error)])
                self._content = b""  # so that it is judged at the next look
        if self._waiting is not None:
            await self._apply(agent, self._waiting)

    def _miss(self, agent: Reconfigurable) -> None:
        self._misses += 1
        if self._misses != PATIENCE:
            return
        why = why_unreadable(self._manifest)
        if why is not None:
            agent.refuse_config([f"{self._manifest} {why}; what was applied last goes on"])
            self._content = b""  # the same content, back again, is news

    async def _apply(self, agent: Reconfigurable, config: Configuration) -> None:
        errors = secret_files.problems(config, self.state)
        if not errors:
            try:
                await agent.apply(config)
            except StoreError as error:
                errors = [str(error)]
        if errors:
            agent.refuse_config(errors)
        else:
            self._waiting = None
