"""The operator process: what is started, in which order, and what ends it.

Invariant: a task that ends ends the process. Order: one full look at everything, then the watches, then
decisions; deciding earlier would take what is not listed yet for missing.
"""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from vacancy_operator.access import Access, AccessError, authority
from vacancy_operator.api import Api, Contact
from vacancy_operator.clock import SystemClock
from vacancy_operator.controller import Controller
from vacancy_operator.core.facts import Instant, JoinAddress, Policy
from vacancy_operator.core.kinds import Kind, Object, Ref, metadata, version
from vacancy_operator.election import Election
from vacancy_operator.engine import Engine, EngineError
from vacancy_operator.health import Health, HealthServer
from vacancy_operator.lister import Lister
from vacancy_operator.log import Trouble, tell
from vacancy_operator.metrics import Metrics
from vacancy_operator.policy import read_policy
from vacancy_operator.recorder import Recorder
from vacancy_operator.store import Store
from vacancy_operator.writer import Writer

if TYPE_CHECKING:
    from vacancy_operator.settings import Settings


class OperatorError(Exception):
    """The operator cannot start or go on; the text says why."""


class Operator:
    """One replica. Make it on the running loop."""

    def __init__(self, settings: Settings, access: Access, address: JoinAddress) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._metrics = Metrics()
        self._contact = Contact(settings.contact_gap)
        self._seen_at = self._clock.now().instant
        self._api = Api(access, settings.namespace, self._metrics)
        self._controller = Controller(self._clock, settings, self._metrics, address, self._contact_since)
        self._store = Store(self._clock, self._controller.changed)
        self._lister = Lister(self._api, self._store, self._metrics, settings.list_every, self._listed)
        self._election = Election(self._api, self._clock, settings, self._turned, self._answered)
        recorder = Recorder(self._api, self._clock, settings.identity)
        self._writer = Writer(
            self._api, self._store, self._clock, recorder, self._election.active, settings.token_life
        )
        self._engine = Engine(access, settings, self._event)
        self._server = HealthServer(self._health, self._metrics)

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set.

        Raises:
            OperatorError: A part of it ended, or its port is taken.
        """
        try:
            await self._server.start(self._settings.listen, self._settings.port)
        except OSError as error:
            raise OperatorError(f"port {self._settings.port}: {error}") from error
        tell("listening", port=self._server.port)
        try:
            async with asyncio.TaskGroup() as group:
                parts = [
                    group.create_task(self._lister.run()),
                    group.create_task(self._election.run()),
                    group.create_task(self._follow_policy()),
                    group.create_task(self._decide()),
                ]
                await stop.wait()
                tell("stopping")
                for part in parts:
                    part.cancel()
        except* EngineError as ended:
            raise OperatorError(str(ended.exceptions[0])) from ended
        finally:
            await self._server.close()
            await self._api.close()

    async def _decide(self) -> None:
        await self._lister.complete.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._engine.run())
            group.create_task(self._controller.run(self._store, self._writer))

    async def _follow_policy(self) -> None:
        trouble = Trouble("reading the policy")
        while True:
            found = await read_policy(self._api, self._settings.policy_name, trouble)
            if found is not self._controller.policy and found is not Policy.UNKNOWN:
                tell("policy", state=found.value)
                self._controller.policy = found
                self._all_changed()
            await asyncio.sleep(self._settings.policy_every)

    def _event(self, kind: Kind, what: str | None, item: Object) -> None:
        self._seen_at = self._clock.now().instant
        self._metrics.events.labels(kind.name).inc()
        if what == "DELETED":
            self._store.remove(Ref(kind, str(metadata(item)["name"])), version(item))
        else:
            self._store.put(kind, item)

    def _listed(self) -> None:
        self._seen_at = self._clock.now().instant

    def _answered(self) -> None:
        """The API server answered the election; after a silence everything is looked at anew."""
        now = self._clock.now().instant
        was_broken = self._contact.since(now) is None
        self._contact.made(now)
        if was_broken:
            self._lister.ask()
            self._controller.recovered()

    def _turned(self, active: bool) -> None:
        tell("active" if active else "standby", replica=self._settings.identity)
        self._metrics.active.set(active)
        self._controller.turn(running=active)
        if active:
            self._lister.ask()
            self._all_changed()

    def _all_changed(self) -> None:
        for host in self._store.hosts():
            self._controller.changed(host)

    def _contact_since(self) -> Instant | None:
        since = self._contact.since(self._clock.now().instant)
        return None if since is None else Instant(since)

    def _health(self) -> Health:
        silence = self._clock.now().instant - self._seen_at
        self._metrics.silence.set(silence)
        self._metrics.hosts.set(self._store.host_count())
        self._metrics.queue_depth.set(self._controller.depth())
        return Health(
            silence=silence,
            limit=self._settings.healthy_for,
            synced=self._lister.complete.is_set(),
            active=self._election.active(),
        )


async def serve(settings: Settings, access: Access) -> None:
    """Run one replica until SIGTERM or SIGINT.

    Raises:
        OperatorError: It cannot start or go on.
    """
    address = await join_address(settings, access)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await Operator(settings, access, address).run(stop)


async def join_address(settings: Settings, access: Access) -> JoinAddress:
    """Where machines outside the cluster find the API server.

    Raises:
        OperatorError: The credentials or the certificate cannot be read.
    """
    try:
        found = await access.configuration()
        ca = settings.public_ca.read_text() if settings.public_ca else authority(found)
    except (AccessError, OSError) as error:
        raise OperatorError(str(error)) from error
    return JoinAddress((settings.public_server or found.host).rstrip("/"), ca)
