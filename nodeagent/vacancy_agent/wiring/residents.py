"""What upstreams hold, observed for the configuration that runs, and what is learned from it on the disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vacancy_agent.collect.holdings import HoldingsWatch
from vacancy_agent.core.facts import Ready
from vacancy_agent.core.shown import ModelsShown
from vacancy_agent.proxy.models import Models
from vacancy_agent.upstreams.holdings import holdings_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from vacancy_agent.core.facts import Reading, Seconds
    from vacancy_agent.core.settings import Dialect, HostSettings
    from vacancy_agent.core.shown import Shown
    from vacancy_agent.proxy.host import Host
    from vacancy_agent.store.sqlite import LocalStore
    from vacancy_agent.upstreams.ask import ServerClient
    from vacancy_agent.wiring.holds import Holds


@dataclass(frozen=True, slots=True)
class _Running:
    client: ServerClient
    dialect: Dialect
    interval: Seconds
    task: asyncio.Task[None]


class Residents:
    """One for a host."""

    def __init__(self, host: Host, holds: Holds, store: LocalStore, changed: Callable[[], None]) -> None:
        """`changed` is told of every new observation."""
        self._host = host
        self._holds = holds
        self._store = store
        self._changed = changed
        self._running: dict[str, _Running] = {}
        self._digests: dict[tuple[str, str], str] = {}
        host.board.contexts.load(store.contexts)
        self._kept = host.board.contexts.version

    def follow(self, group: asyncio.TaskGroup, settings: HostSettings) -> None:
        """Observe the upstreams of these settings; what is the same as before goes on."""
        interval = settings.sampling.interval
        for name, running in list(self._running.items()):
            # The same server may be spoken to in another dialect from now on.
            same = self._holds.clients.get(name) is running.client and (
                settings.upstreams[name].dialect is running.dialect
            )
            if same and interval == running.interval:
                continue
            running.task.cancel()
            del self._running[name]
            if not same:  # another listener too, which asks for its own
                del self._host.models[name]
        for name in settings.upstreams:
            if name not in self._running:
                self._start(group, name, interval)

    def stop(self) -> None:
        """Observe nothing."""
        for running in self._running.values():
            running.task.cancel()
        self._running.clear()

    def _start(self, group: asyncio.TaskGroup, name: str, interval: Seconds) -> None:
        host, holds = self._host, self._holds
        dialect = host.board.settings.upstreams[name].dialect
        client = holds.clients[name]
        holdings = holdings_of(
            dialect, client, holds.llamas[name], holds.lists[name], host.board.contexts, host.clock
        )
        if holdings is None:
            return

        def write(reading: Reading[Shown]) -> None:
            self._write(name, reading)

        def working() -> bool:
            return any(host.ledger.counts().get(name, {}).values())

        watch = HoldingsWatch(holdings, write, working, host.clock, interval)
        models = host.models.setdefault(name, Models(name, dialect, host.board, watch, host.tell))
        models.watched = watch
        self._running[name] = _Running(client, dialect, interval, group.create_task(watch.run()))

    def _write(self, name: str, reading: Reading[Shown]) -> None:
        board = self._host.board
        if name not in board.settings.upstreams:
            return
        board.set_residency(name, reading)
        if isinstance(reading, Ready) and isinstance(reading.value, ModelsShown):
            board.contexts.observed(name, reading.value, reading.at)
            self._know_again(name, reading.value)
        if board.contexts.version != self._kept:
            self._kept = board.contexts.version
            self._store.keep_contexts(board.contexts.items())
        self._changed()

    def _know_again(self, name: str, shown: ModelsShown) -> None:
        """What was measured of another model under the same name says nothing about this one."""
        for model in shown.models:
            known = self._digests.setdefault((name, model.name), model.digest)
            if known != model.digest:
                self._digests[name, model.name] = model.digest
                self._host.board.priors.forget(name, model.name)
