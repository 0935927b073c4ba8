"""One named object, as it is now, for ever: listed, then watched for a minute, and again.

Invariant: what `seen` was told last is not older than a minute and a half while the API server answers. A
watch alone is believed by many and goes blind without a word; listing anew each minute costs a read of one
key and heals whatever was missed. (Reads are not writes: the steady state has none.)
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vacancy_agent.cluster.api import WATCH_S
from vacancy_agent.cluster.fault import EXPIRED, ApiError
from vacancy_agent.cluster.link import Delays, dice

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from vacancy_agent.cluster.api import ClusterApi
    from vacancy_agent.cluster.link import Link

Document = dict[str, Any]
LATE_S = 8.0
"""After which a watch that does not end by itself is taken for dead."""
BETWEEN_S = 1.0
"""At least, and up to twice that, between the end of one watch and the list before the next."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an object is."""

    collection: str
    """Path of its collection in its namespace."""
    name: str
    what: str
    """For people: `ConfigMap lh-here-config`."""


class ObjectWatch:
    """One object."""

    def __init__(
        self,
        api: ClusterApi,
        link: Link,
        place: Place,
        seen: Callable[[Document | None], Awaitable[None]],
        failed: Callable[[ApiError], None],
    ) -> None:
        """`seen` is told of each state, None: there is no such object; `failed` of what keeps us from it."""
        self._api = api
        self._link = link
        self._place = place
        self._seen = seen
        self._failed = failed

    async def run(self) -> None:
        """Follow it until cancelled."""
        delays = Delays()
        while True:
            try:
                await self._cycle(delays)
                await asyncio.sleep(BETWEEN_S * (1 + dice()))
            except ApiError as fault:
                wait = delays.next()
                if fault.status != EXPIRED:
                    self._link.failed(self._place.what, fault)
                    self._failed(fault)
                await self._link.rest(max(wait, fault.retry_after or 0.0))

    async def _cycle(self, delays: Delays) -> None:
        place = self._place
        one = {"fieldSelector": f"metadata.name={place.name}"}
        listed = await self._api.get(place.collection, one)
        self._link.worked(place.what)
        items = listed.get("items") or [None]
        await self._seen(items[0])
        version = str((listed.get("metadata") or {}).get("resourceVersion", ""))
        delays.reset()
        try:
            async with asyncio.timeout(WATCH_S + LATE_S) as limit:
                with self._link.watching(limit):
                    events = self._api.watch(place.collection, {**one, "resourceVersion": version})
                    async with contextlib.aclosing(events):
                        async for event in events:
                            await self._event(event)
        except TimeoutError:
            return

    async def _event(self, event: Document) -> None:
        if event.get("type") in {"ADDED", "MODIFIED"}:
            await self._seen(event["object"])
        elif event.get("type") == "DELETED":
            await self._seen(None)
