"""An agent whose owner is a user of a real systemd-logind of its own."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from standins.agents import lender, manifest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from lab.logind_lab import LogindLab
    from standins.agents import Lender
    from standins.openai_server import OpenAiStandin
    from vacancy_agent.clock import Clock


def owned(url: str, *, release_after: str = "0s", interval: str = "1s", **upstream: Any) -> dict[str, Any]:
    """A host whose owner's presence is read; the rest goes into its upstream."""
    return manifest(
        url,
        spec_owner={"presence": "auto", "releaseAfter": release_after},
        spec_sampling={"interval": interval},
        **upstream,
    )


@contextlib.asynccontextmanager
async def lent_desk(
    folder: Path, standin: OpenAiStandin, _logind: LogindLab, clock: Clock | None = None, **more: Any
) -> AsyncIterator[Lender]:
    """An agent beside this logind, on which nobody is logged in yet: it lends."""
    async with lender(folder / "agent", owned(standin.url, **more), clock) as lent:
        await lent.until(lambda up: up["lendable"])
        yield lent


async def looked_again(lent: Lender) -> None:
    """Return once presence was read by a sample that began after this call."""
    board, clock = lent.agent.host.board, lent.agent.host.clock
    observers = lent.agent.collectors._observers
    assert observers is not None
    since = clock.now()
    observers._presence.request()
    async with asyncio.timeout(10):
        while board.presence_at is None or board.presence_at <= since:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.005)


async def presence_signal(lent: Lender) -> tuple[str, str, str]:
    """Status, reason and message of the condition, looked at now: the agent itself looks a little later."""
    lent.agent.findings.look()
    status = await lent.status()
    found = next(one for one in status["conditions"] if one["type"] == "PresenceSignal")
    return found["status"], found["reason"], found["message"]
