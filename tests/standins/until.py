"""Waiting for what gives no signal (a process that ends), with a generous bound."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


async def until(holds: Callable[[], object], within: float = 10.0) -> None:
    """Return once `holds()` is true; TimeoutError after `within` seconds."""
    async with asyncio.timeout(within):
        while not holds():  # noqa: ASYNC110 - the world outside sets no event
            await asyncio.sleep(0.005)
