"""Writes the agent's part of the status, when `coalesce` says so.

Invariant: at most one attempt a second, whatever happens, and none while nothing changed. Whoever writes over
our part (the operator, which takes a lost agent's word away; an edit by hand) is answered with one write, at
most every ten seconds, so that two writers cannot wage a war.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vacancy_agent.cluster.coalesce import Past, Wait, decide, tried
from vacancy_agent.cluster.fault import ApiError
from vacancy_agent.cluster.link import Delays, dice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vacancy_agent.clock import Clock
    from vacancy_agent.cluster.api import ClusterApi
    from vacancy_agent.cluster.coalesce import Snapshot
    from vacancy_agent.cluster.identity import Identity
    from vacancy_agent.cluster.link import Link
    from vacancy_agent.core.facts import Instant

Document = dict[str, Any]

LOOK_S = 1.0
"""Between two looks at what changes without a word."""
REPAIR_EVERY = 10.0
LASTING_S = 300.0
"""The longest wait after a refusal that will not pass by itself."""
API_VERSION, KIND, PLURAL = "vacancy.dev/v1alpha1", "LendingHost", "lendinghosts"


class Reporter:
    """One for an agent."""

    def __init__(
        self,
        api: ClusterApi,
        link: Link,
        identity: Identity,
        clock: Clock,
        source: Callable[[], Snapshot | None],
    ) -> None:
        """`source` gives the report as it is now; None: there is nothing to report to."""
        self._api = api
        self._link = link
        self._identity = identity
        self._clock = clock
        self._source = source
        self._past = Past()
        self._version = 0
        self._uid: str | None = None
        self._drifted = False
        self._jitter = dice()
        self._changed = asyncio.Event()

    def nudge(self) -> None:
        """Something changed that is to be known at once."""
        self._changed.set()

    async def run(self) -> None:
        """Report until cancelled."""
        passing, lasting = Delays(), Delays(LASTING_S)
        while True:
            self._changed.clear()
            report, now = self._source(), self._clock.now()
            if self._drifted and now - self._past.at >= REPAIR_EVERY:
                self._past = replace(self._past, written=None)
            verdict = Wait(None) if report is None else decide(self._past, report, now, self._jitter)
            if report is None or isinstance(verdict, Wait):
                await self._pause(verdict.until if isinstance(verdict, Wait) else None, now)
                continue
            try:
                await self._write(report)
            except ApiError as fault:
                self._link.failed("status", fault)
                delays = lasting if fault.lasting else passing
                await self._link.rest(max(delays.next(), fault.retry_after or 0.0))
            else:
                self._link.worked("status")
                passing.reset()
                lasting.reset()

    def observed(self, found: Mapping[str, Any] | None) -> None:
        """The LendingHost is like this now: is what we wrote still there?"""
        metadata = (found or {}).get("metadata") or {}
        uid, known = metadata.get("uid"), self._uid
        self._uid = uid
        written = self._past.written
        if found is not None and written is not None:
            if known not in {None, uid}:
                self._past = replace(self._past, written=None)
            elif _version(metadata) >= self._version:
                self._drifted = _drifted(written.status, found.get("status") or {})
        self.nudge()

    async def _write(self, report: Snapshot) -> None:
        identity = self._identity
        self._past = tried(self._past, self._clock.now())
        found = await self._api.apply(
            f"/apis/{API_VERSION}/namespaces/{identity.namespace}/{PLURAL}/{identity.name}/status",
            {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "metadata": {"namespace": identity.namespace, "name": identity.name},
                "status": dict(report.status),
            },
        )
        self._version = _version(found.get("metadata") or {})
        self._past = replace(self._past, written=report, at=self._clock.now())
        self._drifted = False
        self._jitter = dice()

    async def _pause(self, until: Instant | None, now: Instant) -> None:
        wait = LOOK_S if until is None else min(LOOK_S, max(0.0, until - now))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._changed.wait()


def _version(metadata: Mapping[str, Any]) -> int:
    text = str(metadata.get("resourceVersion", ""))
    return int(text) if text.isdigit() else 0


def _drifted(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """Whether our conditions are not as we wrote them."""
    there = {one.get("type"): one for one in theirs.get("conditions") or []}
    return any(
        (there.get(one["type"]) or {}).get(key) != one[key]
        for one in ours["conditions"]
        for key in ("status", "reason")
    )
