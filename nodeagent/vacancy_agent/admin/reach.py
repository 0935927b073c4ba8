"""Does the server of each upstream take connections? Looked up for an answer to a person, for nothing else.

Invariant: this decides nothing. What is lent never hangs on it: a server that is restarted would otherwise
leave its Service, and a borrower learns it from the request itself (`upstream_unavailable`). The failure this
prevents is a status that says "lends" while nobody listens behind the proxy. Rejected: asking all the time,
which wakes servers that sleep; telling from the last request, which knows nothing before the first.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_agent.core.settings import Target, UpstreamSettings

DEADLINE_S = 1.0
"""A server that takes no connection within this time is called silent; all are asked at the same time."""


async def unreachable(upstreams: Mapping[str, UpstreamSettings]) -> dict[str, str | None]:
    """Why the server of each upstream cannot be reached; None: it takes connections."""
    targets = {name: upstream.target for name, upstream in upstreams.items()}
    async with asyncio.TaskGroup() as group:
        tasks = {target: group.create_task(_why_not(target)) for target in set(targets.values())}
    return {name: tasks[target].result() for name, target in targets.items()}


async def _why_not(target: Target) -> str | None:
    try:
        async with asyncio.timeout(DEADLINE_S):
            _, writer = await asyncio.open_connection(target.host, target.port)
    except TimeoutError:
        return f"no connection within {DEADLINE_S:.0f} s"
    except OSError as error:
        return _plain(error)
    writer.transport.abort()
    return None


def _plain(error: OSError) -> str:
    """The system's words; asyncio puts the address before them, and several into one."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused: is it running?"
    return error.strerror or str(error)
