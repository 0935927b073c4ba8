from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vacancy_agent.clock import Clock
    from vacancy_agent.core.facts import Instant


async def wait_until(clock: Clock, at: Instant) -> None:
    """Return no sooner than `at` on the agent's clock, which is not the loop's."""
    while (left := at - clock.now()) > 0:  # noqa: ASYNC110 - time is the event
        await asyncio.sleep(left)
