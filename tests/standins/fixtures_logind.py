"""A real systemd-logind on a private bus, reached through DBUS_SYSTEM_BUS_ADDRESS as the agent would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio

from lab.logind_lab import INSTALL_HINT, LogindLab, missing
from standins.require import require

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest


@pytest_asyncio.fixture
async def logind_lab(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LogindLab]:
    """One lab for one test: it starts in a quarter of a second."""
    lacking = missing()
    require(lacking is None, f"systemd-logind in a private namespace ({lacking})", INSTALL_HINT)
    async with LogindLab() as lab:
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", lab.address)
        yield lab
