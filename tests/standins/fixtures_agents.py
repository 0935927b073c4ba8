"""A stand-in server of an OpenAI kind, and an agent in front of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from standins.agents import Lender, lender, manifest
from standins.openai_server import OpenAiStandin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


@pytest.fixture
def standin() -> Iterator[OpenAiStandin]:
    with OpenAiStandin() as server:
        yield server


@pytest_asyncio.fixture
async def lent(standin: OpenAiStandin, tmp_path: Path) -> AsyncIterator[Lender]:
    """A headless host that lends the stand-in."""
    async with lender(tmp_path / "agent", manifest(standin.url)) as running:
        yield running
