"""One agent's path of requests in driven time: real proxy, gate, ledger, reclaim, journal and HTTP engine.

Not real are the wires (transports that record), the time (it stands still until `advance`), and the samples,
which come when the test says so.
"""

from __future__ import annotations

import contextlib
from hashlib import sha256
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from standins.hosts import host, resource, seen, upstream
from standins.http_engine import Client, DrivenLoop, FakeUpstream, Server
from vacancy_agent.core.board import Board
from vacancy_agent.core.facts import Evidence, Instant, MemoryCapacity, MiB, Ready, Seconds, WallTime
from vacancy_agent.core.gate_kept import Gate
from vacancy_agent.core.ledger import Ledger
from vacancy_agent.core.reclaim import Reclaims
from vacancy_agent.core.settings import AccessSettings, Dialect, ResourceType
from vacancy_agent.proxy.app import GatedProxy
from vacancy_agent.proxy.cutter import Cutter
from vacancy_agent.proxy.host import Host
from vacancy_agent.reclaim.runner import ReclaimRunner
from vacancy_agent.store.journal import HoldJournal, PartitionSpec
from vacancy_agent.wiring.holds import Holds
from vacancy_agent.wiring.pressure import PressureWatch
from vacancy_agent.wiring.readings import Readings
from vacancy_dialects import table_for
from vacancy_edge import Budget, TokenTable, judge_body, refusals
from vacancy_http import Listener, ListenerLimits, UpstreamLimits
from vacancy_http.wheel import Wheel

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine, Generator, Iterable
    from pathlib import Path

    from vacancy_agent.core.job import JobId
    from vacancy_agent.core.settings import HostSettings, UpstreamSettings
    from vacancy_http import Body

BORROW, READ, RELAY, BOTH = "borrow-token", "read-token", "relay-token", "both-token"
ENTRIES = [
    (name, scopes, sha256(token.encode()).hexdigest())
    for name, scopes, token in (
        ("ci", ["borrow"], BORROW),
        ("prometheus", ["read"], READ),
        ("gateway", ["relay"], RELAY),
        ("owner", ["borrow", "admin"], BOTH),
    )
]
FREE = 20_000
BOOT = "the-same-boot"


class RigClock:
    """The driven loop's time; two reads never give the same, as on a real machine."""

    def __init__(self, loop: DrivenLoop) -> None:
        self._loop = loop
        self._reads = 0

    def now(self) -> Instant:
        self._reads += 1
        return Instant(1000.0 + self._loop.now + self._reads * 1e-7)

    def awake(self) -> Seconds:
        return Seconds(self.now())

    def wall(self) -> WallTime:
        return WallTime(1_772_366_400.0 + self._loop.now)


class Pause:
    """What a coroutine of the proxy waits for, until the test lets it go on."""

    def __init__(self) -> None:
        self.over = False

    def __await__(self) -> Generator[Pause, None, None]:
        while not self.over:
            yield self


class Tasks:
    """Runs each coroutine as far as it comes by itself."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Coroutine[Any, Any, None], Pause]] = []

    def __call__(self, work: Coroutine[Any, Any, None]) -> object:
        self._step(work)
        return work

    def go_on(self) -> None:
        """Whoever need not wait any longer goes on; what they do may let others go on, within this call."""
        while (ready := next((entry for entry in self.waiting if entry[1].over), None)) is not None:
            self.waiting.remove(ready)
            self._step(ready[0])

    def close(self) -> None:
        for work, _ in self.waiting:
            work.close()
        self.waiting.clear()

    def _step(self, work: Coroutine[Any, Any, None]) -> None:
        with contextlib.suppress(StopIteration):
            self.waiting.append((work, work.send(None)))


class Samples:
    """The sampler: a host's memory at once, a card when the test calls `take`."""

    def __init__(self, rig: LendingRig) -> None:
        self._rig = rig
        self.free: dict[str, int] = {}
        self.wanted: list[str] = []
        self._pauses: list[tuple[frozenset[str], Pause]] = []

    def now(self, resource: str) -> bool:
        if self._rig.settings.resources[resource].type is not ResourceType.MEMORY:
            return False
        self.take(resource)
        return True

    def soon(self, resources: Iterable[str]) -> None:
        self.wanted += resources

    async def fresh(self, resources: Iterable[str]) -> None:
        pause = Pause()
        self._pauses.append((frozenset(resources), pause))
        await pause

    def take(self, *resources: str) -> None:
        """A reading of these (of all, when none is named), and whoever waited for one goes on."""
        rig = self._rig
        for name in resources or tuple(rig.settings.resources):
            free = MiB(self.free.get(name, FREE))
            rig.readings.set_capacity(name, Ready(MemoryCapacity(free, MiB(24_564)), rig.clock.now()))
        self.give_up(*resources)

    def give_up(self, *resources: str) -> None:
        """Nobody waits for these any longer; the second passed without a reading."""
        for names, pause in self._pauses:
            pause.over |= not resources or names <= set(resources)
        self._rig.tasks.go_on()


class Helper:
    """Judges large bodies like the helper process does, when the test says so."""

    def __init__(self, rig: LendingRig) -> None:
        self._rig = rig
        self.asked = 0
        self._pauses: list[Pause] = []

    async def judge(self, match: Any, body: Body, *rest: Any, relay: bool = False) -> Any:
        self.asked += 1
        pause = Pause()
        self._pauses.append(pause)
        await pause
        try:
            raw = body.bytes
        except ValueError:  # closed, as its client left: the real one refuses, too
            return refusals.helper_lost("it is gone")
        return judge_body(match, raw, *rest, relay=relay)

    def answer(self) -> None:
        for pause in self._pauses:
            pause.over = True
        self._rig.tasks.go_on()


class Port:
    """One upstream's listener; what `standins.http_engine` calls a rig."""

    def __init__(
        self, rig: LendingRig, settings: UpstreamSettings, limits: ListenerLimits, **more: Any
    ) -> None:
        self.loop = rig.loop
        self.upstream = FakeUpstream(cast("Any", self), UpstreamLimits())
        self.budget = Budget(more.pop("budget", 256 << 20))
        self.app = GatedProxy(
            rig.host,
            settings,
            table_for(settings.dialect.value),
            self.upstream,
            rig.journal.partition(settings.name),
            self.budget,
            max_body=limits.max_body_bytes,
            **more,
        )
        self.listener = Listener(self.app, host="", port=0, limits=limits)
        self.listener.wheel = Wheel(cast("asyncio.AbstractEventLoop", rig.loop))

    def connect(self, data: bytes = b"") -> Client:
        client = Client(cast("Any", self))
        if data:
            client.send(data)
        return client

    def link(self, index: int = -1) -> Server:
        return Server(cast("Any", self), self.upstream.links[index])


class LendingRig:
    """A host that lends. `tidy` it at the end; `LendingRig.again` is a kill -9 and a restart."""

    def __init__(
        self,
        folder: Path,
        settings: HostSettings | None = None,
        *,
        access: AccessSettings | None = None,
        limits: ListenerLimits | None = None,
        loop: DrivenLoop | None = None,
        **port: Any,
    ) -> None:
        self.folder = folder
        self.settings = settings or one_upstream()
        self.loop = loop or DrivenLoop()
        self.clock = RigClock(self.loop)
        self.told: list[tuple[str, dict[str, object]]] = []
        self.nudges = 0
        self.tasks = Tasks()
        self.samples = Samples(self)
        self.helper = Helper(self)
        self.journal = HoldJournal(folder / "holds", BOOT)
        recovered = self.journal.configure(_partitions(self.settings))
        board = Board(self.settings)
        ledger = Ledger(self.settings, board)
        self.host = Host(
            clock=self.clock,
            board=board,
            gate=Gate(board),
            ledger=ledger,
            tokens=TokenTable(ENTRIES),
            access=access or AccessSettings(),
            sampler=self.samples,
            tell=self.tell,
            spawn=self.tasks,
            reclaiming=self,
            held=self._held,
            helper=cast("Any", self.helper),
        )
        self.holds = Holds(self.host, self.journal, cast("Any", None))
        self.reclaims = Reclaims(self.settings)
        self.reclaim = ReclaimRunner(self.reclaims, ledger, Cutter(self.host), self.clock, self.tell)
        self.reclaim.wake = cast("Any", self.loop.call_later)
        kept = cast("Any", SimpleNamespace(calibrations={}))
        self.pressure = PressureWatch(board, ledger, kept, self.clock, self.tell)
        self.readings = Readings(board, self.reclaim, self.clock, self.tell, lambda: None, self.pressure)
        self.holds.restore(recovered)
        self._limits = limits or ListenerLimits()
        self._port = port
        self.ports = {name: self._open(up) for name, up in self.settings.upstreams.items()}
        self.ending: list[Port] = []
        """Listeners that have gone from the configuration and have not ended yet."""
        self.observe()

    @property
    def port(self) -> Port:
        return next(iter(self.ports.values()))

    def again(self) -> LendingRig:
        """The agent was killed, and another one starts on what is left."""
        self.tasks.close()
        return LendingRig(self.folder, self.settings, loop=self.loop)

    def reconfigure(self, settings: HostSettings) -> None:
        """What `Agent.apply` does, up to where it waits for the listeners that go."""
        recovered = self.journal.configure(_partitions(settings))
        old, self.settings = self.settings, settings
        self.host.ledger.reconfigure(settings)
        self.host.board.reconfigure(settings)
        self.reclaim.reconfigure(settings)
        self.host.generation += 1
        self.holds.restore(recovered)
        for name in list(self.ports):
            if settings.upstreams.get(name) != old.upstreams[name]:
                self.ending.append(self.ports.pop(name))
        for name, up in settings.upstreams.items():
            if name not in self.ports:
                self.ports[name] = self._open(up)

    def end_listeners(self) -> None:
        """The listeners that had to go have gone, with what still streamed on them."""
        for port in self.ending:
            port.listener.closing = True
            for connection in list(port.listener._connections):
                connection.cut()
            port.upstream.close()
        self.ending.clear()
        self.loop.settle()

    def _open(self, settings: UpstreamSettings) -> Port:
        return Port(self, settings, self._limits, **self._port)

    def observe(self) -> None:
        """Everything is read afresh, and nobody is there."""
        self.samples.take()
        self.presence(Evidence.ABSENT)

    def presence(self, evidence: Evidence) -> None:
        self.readings.set_presence(seen(evidence, self.clock.now()))

    def advance(self, seconds: float) -> None:
        self.loop.advance(seconds)
        self.loop.settle()

    def tell(self, event: str, **facts: object) -> None:
        self.told.append((event, facts))

    def told_of(self, event: str) -> list[dict[str, object]]:
        return [facts for name, facts in self.told if name == event]

    def job_ended(self, upstream: str, job: JobId, now: Instant) -> None:
        self.reclaim.job_ended(upstream, job, now)

    def tidy(self) -> None:
        self.ending += self.ports.values()
        self.end_listeners()
        self.tasks.close()
        self.journal.close()

    def _held(self) -> None:
        self.nudges += 1


def _partitions(settings: HostSettings) -> list[PartitionSpec]:
    return [PartitionSpec(up.name, up.slots, local=True) for up in settings.upstreams.values()]


def one_upstream(**more: Any) -> HostSettings:
    """`up` of dialect openai on the memory `ram`; `more` goes into the upstream."""
    facts: dict[str, Any] = {"dialect": Dialect.OPENAI} | more
    kind = facts.pop("kind", ResourceType.MEMORY)
    return host([upstream("up", ("ram",), **facts)], [resource("ram", kind)])
