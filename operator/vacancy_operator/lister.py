"""The full look: every object of every kind, at the start, after an outage, and every five minutes.

Invariant: what a watch missed is found. After a compaction kopf lists anew and tells of no deletion, so an
operator that lived on events alone would serve machines that are gone, for ever.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from vacancy_operator.api import ApiError
from vacancy_operator.core.kinds import KINDS, LENDING_HOST
from vacancy_operator.log import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_operator.api import Api
    from vacancy_operator.metrics import Metrics
    from vacancy_operator.store import Store

FIRST_RETRY_S, LONGEST_RETRY_S = 1.0, 10.0


class Lister:
    """Fills the store; `done` is told after each full look."""

    def __init__(
        self, api: Api, store: Store, metrics: Metrics, every: float, done: Callable[[], None]
    ) -> None:
        self._api = api
        self._store = store
        self._metrics = metrics
        self._every = every
        self._done = done
        self._due = asyncio.Event()
        self._trouble = Trouble("full list")
        self.complete = asyncio.Event()
        """Set after the first full look."""

    def ask(self) -> None:
        """Look as soon as possible."""
        self._due.set()

    async def run(self) -> None:
        """Until cancelled."""
        retry = FIRST_RETRY_S
        while True:
            self._due.clear()
            try:
                await self.look()
            except ApiError as error:
                self._trouble.met(_hint(error))
                await asyncio.sleep(retry)
                retry = min(LONGEST_RETRY_S, retry * 2)
                continue
            retry = FIRST_RETRY_S
            self._trouble.over()
            await self._wait()

    async def look(self) -> None:
        """One full look.

        Raises:
            ApiError: Something could not be listed; what was listed before is in the store.
        """
        for kind in KINDS:
            items, at = await self._api.list(kind)
            news = self._store.take_list(kind, items, at)
            if news and self.complete.is_set():
                self._metrics.missed.labels(kind.name).inc(news)
        self._store.free_names()
        self.complete.set()
        self._done()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._every):
                await self._due.wait()
        except TimeoutError:
            pass


def _hint(error: ApiError) -> str:
    if error.missing and LENDING_HOST.plural in str(error):
        return f"{error}; are the definitions applied (crds/)?"
    return str(error)
