"""One agent: its parts, their order at start and end, and how a new configuration reaches them.

Start: state directory (locked), journal and store, board and ledger with the holds of an earlier run,
collectors, then the listeners, last of all. End: the listeners first, the journal last, marked clean. A task
that ends, ends the agent with an error: a half-dead agent that still answers `/healthz` is worse than a dead
one.
"""

from __future__ import annotations

import asyncio
import itertools
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from vacancy_agent.admin.debug import DebugWindow
from vacancy_agent.admin.events import Events
from vacancy_agent.core.board import Board
from vacancy_agent.core.conditions import Conditions, config_finding
from vacancy_agent.core.gate_kept import Gate
from vacancy_agent.core.job import ReleasedBy
from vacancy_agent.core.ledger import Ledger
from vacancy_agent.core.lending import LocalPause
from vacancy_agent.core.reclaim import Reclaims
from vacancy_agent.core.rfc3339 import rfc3339
from vacancy_agent.proxy.cutter import Cutter
from vacancy_agent.proxy.host import Host
from vacancy_agent.proxy.turns import Turns
from vacancy_agent.reclaim.runner import ReclaimRunner
from vacancy_agent.reclaim.unloads import Unloads
from vacancy_agent.store.boot import boot_id
from vacancy_agent.store.journal import HoldJournal, PartitionSpec
from vacancy_agent.store.sqlite import LocalStore, Usage
from vacancy_agent.upstreams.ask import open_session
from vacancy_agent.upstreams.process import local_addresses
from vacancy_agent.wiring.collectors import Collectors
from vacancy_agent.wiring.findings import Findings
from vacancy_agent.wiring.holds import Holds
from vacancy_agent.wiring.listeners import Listeners
from vacancy_agent.wiring.pressure import PressureWatch
from vacancy_agent.wiring.readiness import missing
from vacancy_agent.wiring.readings import Readings
from vacancy_agent.wiring.residents import Residents
from vacancy_agent.wiring.server_listeners import ServerListeners
from vacancy_agent.wiring.supervise import essential, must_listen
from vacancy_agent.wiring.tell import recent
from vacancy_agent.wiring.tracks import Tracks
from vacancy_api.version import VERSION
from vacancy_edge import BodyHelper, TokenTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_agent.clock import Clock
    from vacancy_agent.core.effects import PublishPhase
    from vacancy_agent.core.facts import Instant, ProcessIdentity, WallTime
    from vacancy_agent.core.job import JobId
    from vacancy_agent.proxy.host import Journalist
    from vacancy_agent.store.errors import StoreError
    from vacancy_agent.store.state import StateDir
    from vacancy_agent.upstreams.listener_state import ListenerState
    from vacancy_agent.wiring.api_server import ApiServer
    from vacancy_agent.wiring.config import Configuration
    from vacancy_http import Counters

SOCKET_TICKS = 5
"""Ticks between two looks at the sockets: whether they listen, and whether a port that was taken is free."""
TICK_S = 1.0
"""Between two looks at what changes by time alone: stale presence, pauses that end."""


class Agent:
    """Everything of one host, on one loop. Make it on the running loop."""

    def __init__(self, config: Configuration, state: StateDir, clock: Clock, tell: Journalist) -> None:
        self.version = VERSION
        self.events = tell = Events(tell)
        self.config = config
        self.conditions = Conditions()
        self._state = state
        self._tell = tell
        self._group = asyncio.TaskGroup()
        self._journal = HoldJournal(state.holds, boot_id())
        self.store = LocalStore(state.database)
        board = Board(config.host)
        ledger = Ledger(config.host, board)
        self.host = self._host_of(config, board, ledger, clock)
        self.holds = Holds(self.host, self._journal, state)
        self.tracks = Tracks(self.host, self.holds)
        cutter = Cutter(self.host, self.tracks.cancel)
        self.reclaim = ReclaimRunner(Reclaims(config.host), ledger, cutter, clock, tell)
        self.unloads = Unloads(self.host, self._group.create_task, self.holds.lists.get, self._unloaded)
        self.unloads.free = self.tracks.free
        self.reclaim.left = self.tracks.held
        self.findings = Findings(self.conditions, board, lambda: self.reclaim.claims, clock, tell, self.bound)
        self.pressure = PressureWatch(board, ledger, self.store, clock, tell)
        self.readings = Readings(board, self.reclaim, clock, tell, self.findings.soon, self.pressure)
        self.residents = Residents(self.host, self.holds, self.store, self.findings.soon)
        self.listeners = Listeners(self.host, self._journal, state)
        self.readings.on_wake.append(self.listeners.connect_anew)
        self.debug = DebugWindow(self.listeners.watch, clock, tell)
        self.servers = ServerListeners(tell)
        self.servers.follow(config.host.upstreams)
        self._pause = self.store.switches.pause
        self._lending = self.store.switches.lending
        self.api: ApiServer | None = None
        """Set by whoever serves the API, so that it follows the configuration."""
        self._refused: list[str] = []
        """What is wrong with the newest configuration, which therefore does not run."""
        self._unbound: list[str] = []
        """Sockets of the configuration that runs, and why they cannot be had just now."""
        self._listening = asyncio.Lock()
        self._closed = False

    def _host_of(self, config: Configuration, board: Board, ledger: Ledger, clock: Clock) -> Host:
        """What the path of a request uses, with whoever observes for it."""
        loop = asyncio.get_running_loop()
        processes: dict[str, ProcessIdentity] = {}
        self.collectors = Collectors(clock, processes)
        return Host(
            clock=clock,
            board=board,
            gate=Gate(board),
            ledger=ledger,
            tokens=TokenTable(config.token_entries),
            access=config.access,
            sampler=self.collectors,
            tell=self._tell,
            spawn=self._group.create_task,
            reclaiming=self,
            held=lambda: self.holds.keeper.nudge(),
            track=lambda: self.tracks.nudge(),
            in_turn=Turns(loop.call_soon).take,
            helper=BodyHelper(loop),
            processes=processes,
        )

    async def run(self, ready: asyncio.Event | None = None) -> None:
        """Lend until cancelled.

        Raises:
            ExceptionGroup: a part failed; the agent has stopped.
        """
        self.reclaim.wake = asyncio.get_running_loop().call_later
        try:
            async with open_session() as self._session, self._group as group:
                self._take_switches()
                self.holds.restore(self._journal.configure(_partitions(self.config)))
                self.holds.watch(self._session, self.config.host.upstreams)
                self.reclaim.unload = self.unloads.start
                self.collectors.start(group, self.config.host, self.readings, self.holds.locals)
                self.residents.follow(group, self.config.host)
                for name, part in (
                    ("the hold keeper", self.holds.keeper.run),
                    ("the prompts", self.tracks.run),
                    ("the store", partial(self.store.keep, self._not_saved)),
                    ("the pressure", self.pressure.keep),
                    ("the look at the servers", self.servers.run),
                    ("the conditions", self.findings.run),
                    ("the clock", self._ticking),
                ):
                    group.create_task(essential(name, part))
                try:
                    await self._listen()
                    if ready is not None:
                        ready.set()
                    await asyncio.Event().wait()
                finally:  # while the rest still runs: what ends in the grace is proved and sampled as ever
                    await self.listeners.close()
                    self.collectors.stop()
                    self.residents.stop()
        finally:
            await self.close()

    async def close(self) -> None:
        """Put everything on the disk; `run` does it at its end, so it is for an agent that never ran."""
        if self._closed:
            return
        self._closed = True
        self.reclaim.close()
        self.debug.close()
        self.host.helper.close()
        self._count_usage()
        try:
            await self.pressure.save()
            await self.store.close()
        finally:
            self._journal.close()

    # What the API asks for (`admin.running.Running`).

    @property
    def config_digest(self) -> str | None:
        """Digest of the configuration that runs."""
        return self.config.digest

    @property
    def config_document(self) -> str:
        """That configuration, without secrets."""
        return self.config.document

    @property
    def abandoned_probes(self) -> int:
        """Programs of probes that hang in the kernel."""
        return self.collectors.abandoned_probes

    @property
    def reclaims(self) -> Mapping[str, PublishPhase]:
        """The last decision of each upstream's reclaim."""
        return self.reclaim.published

    @property
    def unloaded(self) -> Mapping[str, tuple[bool | None, str]]:
        """What each upstream that was asked to unload showed."""
        return self.unloads.seen(self.reclaim.claims)

    def bound(self, upstream: str) -> bool:
        """Whether the upstream's proxy listens."""
        return self.listeners.bound(upstream)

    def recent_log(self) -> list[str]:
        """The newest lines of the log."""
        return recent()

    def server_listener(self, upstream: str) -> ListenerState:
        """Where the upstream's server listens."""
        return self.servers.state(upstream)

    def engine_counters(self) -> Mapping[str, Counters]:
        """The HTTP engine's counts by upstream."""
        return self.listeners.counters()

    def ready(self) -> list[str]:
        """Why the agent is not ready, one line each."""
        return list(missing(self.host.board, self.host.clock.now(), self.bound))

    def usage_today(self) -> Mapping[str, Usage]:
        """What each borrower used since midnight, local time."""
        self._count_usage()
        return self.store.usage(self._today())

    async def pause(self, until: WallTime | None) -> None:
        """Stop lending at this machine; in force before it is on the disk."""
        self._pause = LocalPause(until)
        self._switched()
        await self.store.set_pause(self._pause)

    async def resume(self) -> None:
        """End a pause made at this machine."""
        self._pause = None
        self._switched()
        await self.store.set_pause(None)

    async def set_lending(self, enabled: bool) -> None:
        """The switch at this machine."""
        self._lending = enabled
        self._switched()
        await self.store.set_lending(enabled)

    async def set_resource(self, resource: str, enabled: bool) -> None:
        """The switch of one resource at this machine."""
        self.host.board.set_resource_enabled(resource, enabled)
        self._tell("resource switched", resource=resource, enabled=enabled)
        self.findings.look()
        await self.store.set_resource(resource, enabled)

    def release_hold(self, job: JobId) -> bool:
        """Free a hold because the administrator knows that it ended."""
        return self.holds.release(job, ReleasedBy.ADMINISTRATOR, "released by the administrator")

    # What the proxies report (`proxy.host.Reclaiming`).

    def job_ended(self, upstream: str, job: JobId, now: Instant) -> None:
        """A job was released, or is held now."""
        self.reclaim.job_ended(upstream, job, now)

    # New configuration.

    async def apply(self, config: Configuration) -> None:
        """Run by another configuration; a listener that did not change, and what streams on it, stays.

        Raises:
            StoreError: the hold journal cannot have a file for it; nothing has changed.
        """
        recovered = self._journal.configure(_partitions(config))
        old, self.config = self.config, config
        host = self.host
        host.ledger.reconfigure(config.host)
        host.board.reconfigure(config.host)
        self.pressure.reconfigure(config.host)
        self.reclaim.reconfigure(config.host)
        host.tokens = TokenTable(config.token_entries)
        host.access = config.access
        host.generation += 1
        self.holds.restore(recovered)
        self.holds.watch(self._session, config.host.upstreams)
        self.servers.follow(config.host.upstreams)
        self.collectors.start(self._group, config.host, self.readings, self.holds.locals)
        self.residents.follow(self._group, config.host)
        self._refused = []
        await self._listen()
        self._tell("configuration applied", digest=config.digest[:12], was=old.digest[:12])

    def refuse_config(self, errors: list[str]) -> None:
        """A new configuration is wrong: the old one stays, and every error is named."""
        if errors != self._refused:
            self._tell("configuration refused", errors=" | ".join(errors))
        self._refused = errors
        self.findings.find(config_finding([*errors, *self._unbound]))

    # Inner parts.

    def _unloaded(self, upstream: str, attempt: int, shown: bool) -> None:
        self.reclaim.unload_result(upstream, attempt, shown=shown)
        self.findings.soon()

    async def _listen(self) -> None:
        """Have the sockets of the configuration that runs, and say which cannot be had."""
        async with self._listening:
            unbound = await self.listeners.apply(self.config)
            if self.api is not None:
                unbound += await self.api.follow(self.config.access)
            if unbound and unbound != self._unbound:
                self._tell("cannot listen", errors=" | ".join(unbound))
            self._unbound = unbound
            self.findings.find(config_finding([*self._refused, *unbound]))
            self.findings.soon()

    def _local_pause(self) -> LocalPause | None:
        """Switch and pause of this machine together. The disk follows them; a full one does not undo them."""
        return self._pause if self._lending else LocalPause(None, is_switch=True)

    def _switched(self) -> None:
        pause = self._local_pause()
        self.host.board.set_local_pause(pause)
        if pause is None:
            self._tell("resumed here")
        else:
            self._tell("paused here", until="resumed" if pause.until is None else rfc3339(pause.until))
            self.reclaim.lending_stopped(self.host.clock.now())
        self.findings.look()

    def _take_switches(self) -> None:
        """What was switched in an earlier run, also of resources that come with a later configuration."""
        self.host.board.set_local_pause(self._local_pause())
        for resource, enabled in self.store.switches.resources.items():
            self.host.board.set_resource_enabled(resource, enabled)

    def _not_saved(self, error: StoreError) -> None:
        self._tell("usage not saved", why=error)

    def _count_usage(self) -> None:
        """Hand the borrowers' use over to the store, on the day that it is now."""
        used, self.host.used = self.host.used, {}
        today = self._today()
        for borrower, one in used.items():
            self.store.add_usage(today, borrower, Usage(requests=one.requests, seconds=one.seconds))

    def _today(self) -> str:
        return datetime.fromtimestamp(self.host.clock.wall()).astimezone().date().isoformat()

    async def _ticking(self) -> None:
        for tick in itertools.count(1):
            await asyncio.sleep(TICK_S)
            self.reclaim.tick()  # the loop's timers stand still while the machine sleeps
            self.readings.tick()
            self._count_usage()
            if tick % SOCKET_TICKS == 0:
                must_listen([*self.listeners.deaf(), *(self.api.deaf() if self.api is not None else ())])
                if self._unbound:
                    await self._listen()


def _partitions(config: Configuration) -> list[PartitionSpec]:
    return [
        PartitionSpec(name, upstream.slots, local=local_addresses(upstream.target.host) is not None)
        for name, upstream in config.host.upstreams.items()
    ]
