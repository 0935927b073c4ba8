"""The sign of life: the Lease of the host, renewed every 10 s, 40 s long.

It is also what notices that the API server is back: it tries more often than anything else while there is an
outage, and what it finds wakes the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vacancy_agent.cluster.fault import ApiError
from vacancy_agent.cluster.link import dice

if TYPE_CHECKING:
    from vacancy_agent.clock import Clock
    from vacancy_agent.cluster.api import ClusterApi
    from vacancy_agent.cluster.identity import Identity
    from vacancy_agent.cluster.link import Link
    from vacancy_agent.core.facts import WallTime

RENEW_S = 10.0
DURATION_S = 40
RETRY_S = 5.0
"""After a failure: four tries within a lease."""
API_VERSION = "coordination.k8s.io/v1"


class Heartbeat:
    """One for an agent."""

    def __init__(self, api: ClusterApi, link: Link, identity: Identity, clock: Clock) -> None:
        self._api = api
        self._link = link
        self._identity = identity
        self._clock = clock
        self._holder = f"{identity.name}-{secrets.token_hex(4)}"
        self._wanted = asyncio.Event()

    async def run(self) -> None:
        """Renew until cancelled."""
        while True:
            started = self._clock.now()
            self._wanted.clear()
            wait = await self._beat()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(1.0, wait - (self._clock.now() - started))):
                    await self._wanted.wait()

    def soon(self) -> None:
        """Renew at once: the machine slept, and its lease may have run out."""
        self._wanted.set()

    async def _beat(self) -> float:
        """Renew once; returns the seconds from its start to the next."""
        identity = self._identity
        path = f"/apis/{API_VERSION}/namespaces/{identity.namespace}/leases/{identity.prefix}"
        try:
            await self._api.apply(path, lease(identity, self._holder, self._clock.wall()))
        except ApiError as fault:
            self._link.failed("Lease", fault)
            return max(RETRY_S, fault.retry_after or 0.0) + dice()
        self._link.worked("Lease")
        return RENEW_S - dice() / 2


def lease(identity: Identity, holder: str, wall: WallTime) -> dict[str, Any]:
    """The Lease as the agent applies it; its owner and labels are the operator's."""
    renewed = datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "apiVersion": API_VERSION,
        "kind": "Lease",
        "metadata": {"namespace": identity.namespace, "name": identity.prefix},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": DURATION_S, "renewTime": renewed},
    }
