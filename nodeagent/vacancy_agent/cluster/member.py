"""The parts of a joined agent together: two watches, the feed, the reporter, the heartbeat, the token.

Everything here may fail for as long as it likes without the agent that lends noticing. A bug is no failure:
it ends the task group, and with it the agent, which is started again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from vacancy_agent.cluster.api import ClusterApi
from vacancy_agent.cluster.feed import Feed, Runner
from vacancy_agent.cluster.heartbeat import Heartbeat
from vacancy_agent.cluster.link import Link
from vacancy_agent.cluster.renewal import Renewal
from vacancy_agent.cluster.report import Generations, snapshot
from vacancy_agent.cluster.reporter import API_VERSION, PLURAL, Reporter
from vacancy_agent.cluster.secret_copies import SecretCopies
from vacancy_agent.cluster.watch import ObjectWatch, Place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from vacancy_agent.clock import Clock
    from vacancy_agent.cluster.coalesce import Snapshot
    from vacancy_agent.cluster.fault import ApiError
    from vacancy_agent.cluster.identity import Identity
    from vacancy_agent.cluster.link import Tell
    from vacancy_agent.core.conditions import Condition

Document = dict[str, Any]


class Joining(Runner, Protocol):
    """The agent, as seen from its membership. Called on the agent's loop."""

    def status(self) -> Mapping[str, Any]:
        """`status.agent` as it is now (`admin.report.agent_status`)."""
        ...

    def conditions(self) -> Sequence[Condition]:
        """The conditions as they are now."""
        ...


class Member:
    """One for an agent."""

    def __init__(self, agent: Joining, identity: Identity, secrets: Path, clock: Clock, tell: Tell) -> None:
        """`secrets` is the folder for copies of Secrets."""
        self._agent = agent
        self._identity = identity
        self._link = Link(clock, tell)
        self._api = ClusterApi(identity, clock)
        self._feed = Feed(identity, SecretCopies(self._api, identity, secrets), agent)
        self._reporter = Reporter(self._api, self._link, identity, clock, self._report)
        self._renewal = Renewal(self._api, identity, tell)
        self._blind = False
        """We may not look at the LendingHost: then its status is written unseen."""
        self._heartbeat = Heartbeat(self._api, self._link, identity, clock)
        self._slept = asyncio.Event()

    async def run(self) -> None:
        """Be a member until cancelled."""
        core = f"/api/v1/namespaces/{self._identity.namespace}/configmaps"
        hosts = f"/apis/{API_VERSION}/namespaces/{self._identity.namespace}/{PLURAL}"
        config, host = f"{self._identity.prefix}-config", self._identity.name
        try:
            async with asyncio.TaskGroup() as group:
                for place, seen, failed in (
                    (Place(core, config, f"ConfigMap {config}"), self._config_seen, self._feed.config_failed),
                    (Place(hosts, host, f"LendingHost {host}"), self._host_seen, self._host_failed),
                ):
                    group.create_task(ObjectWatch(self._api, self._link, place, seen, failed).run())
                group.create_task(self._heartbeat.run())
                group.create_task(self._feed.run())
                group.create_task(self._reporter.run())
                group.create_task(self._renewal.run())
                group.create_task(self._connect_anew())
        finally:
            await self._api.close()

    def nudge(self) -> None:
        """A condition of the agent changed."""
        self._reporter.nudge()

    def woke(self) -> None:
        """The machine slept: whatever was connected may be dead without a word."""
        self._slept.set()

    async def _connect_anew(self) -> None:
        """After each sleep close every connection and show a sign of life, which wakes all who wait."""
        while True:
            await self._slept.wait()
            self._slept.clear()
            await self._api.close()
            self._link.connect_anew()  # closing does not wake those who read
            self._heartbeat.soon()

    async def _config_seen(self, found: Document | None) -> None:
        await self._feed.config_seen(found)
        self._reporter.nudge()

    async def _host_seen(self, found: Document | None) -> None:
        await self._feed.host_seen(found)
        self._reporter.observed(found)

    def _host_failed(self, fault: ApiError) -> None:
        self._blind = fault.denied and not fault.outage

    def _report(self) -> Snapshot | None:
        """What is to be in the status; None: nothing that is whole, or no LendingHost to be about."""
        host, running = self._feed.host, self._agent.document
        missing = host.uid is None if host is not None else not self._blind
        if missing or self._feed.applying:
            return None
        generation = running.host.generation if running is not None else host.generation if host else None
        generations = Generations(generation, generation if self._feed.judged is None else self._feed.judged)
        agent = {**self._agent.status(), "clockSkewSeconds": self._api.skew}
        return snapshot(agent, self._agent.conditions(), generations)
