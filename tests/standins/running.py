"""The agent as its API sees it, on a real board and ledger, without sockets, collectors or a disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from standins.clock import FakeClock
from standins.hosts import observe
from vacancy_agent.admin.debug import DebugWindow
from vacancy_agent.admin.events import Events
from vacancy_agent.core.board import Board
from vacancy_agent.core.conditions import Conditions
from vacancy_agent.core.job import JobId, ReleasedBy
from vacancy_agent.core.ledger import Ledger
from vacancy_agent.core.settings import AccessSettings
from vacancy_agent.proxy.counters import AuthCounters, UpstreamCounters
from vacancy_agent.upstreams.listener_state import ListenerState
from vacancy_edge import TokenTable

if TYPE_CHECKING:
    from vacancy_agent.core.effects import PublishPhase
    from vacancy_agent.core.facts import WallTime
    from vacancy_agent.core.settings import HostSettings
    from vacancy_agent.store.sqlite import Usage
    from vacancy_http import Counters


@dataclass
class StillAgent:
    """Everything is as it was put here; nothing happens by itself. `asked` lists what the API wanted."""

    settings: HostSettings
    vacant: bool = True
    """Every resource was read just now, and nobody is there."""
    version: str = "0.1.0"
    config_digest: str | None = "0" * 64
    abandoned_probes: int = 0
    unbound: set[str] = field(default_factory=set)
    missing: list[str] = field(default_factory=list)
    used: dict[str, Usage] = field(default_factory=dict)
    published: dict[str, PublishPhase] = field(default_factory=dict)
    unloaded: dict[str, tuple[bool | None, str]] = field(default_factory=dict)
    engine: dict[str, Counters] = field(default_factory=dict)
    servers: dict[str, ListenerState] = field(default_factory=dict)
    configured: str = '{"kind": "AgentConfig"}'
    logged: list[str] = field(default_factory=lambda: ["2026-11-30T08:00:00.000Z held job=7"])
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.board = Board(self.settings)
        self.ledger = Ledger(self.settings, self.board)
        self.conditions = Conditions()
        self.told: list[tuple[str, dict[str, object]]] = []
        self.events = Events(lambda event, **facts: self.told.append((event, facts)))
        self.counters: dict[str, UpstreamCounters] = {}
        self.debug = DebugWindow(lambda on: self.asked.append(("watch", on)), self.clock, self.events)
        self.host: Any = SimpleNamespace(
            models={},
            clock=self.clock,
            board=self.board,
            ledger=self.ledger,
            tokens=TokenTable([]),
            access=AccessSettings(),
            auth=AuthCounters(),
            counters=self.counters,
        )
        if self.vacant:
            self.observe()

    def observe(self) -> None:
        """Read every resource anew; nobody is there."""
        observe(self.board, self.clock.now())

    @property
    def reclaims(self) -> dict[str, PublishPhase]:
        return self.published

    @property
    def config_document(self) -> str:
        return self.configured

    def recent_log(self) -> list[str]:
        return self.logged

    def bound(self, upstream: str) -> bool:
        return upstream not in self.unbound

    def server_listener(self, upstream: str) -> ListenerState:
        return self.servers.get(upstream, ListenerState.UNKNOWN)

    def engine_counters(self) -> dict[str, Counters]:
        return self.engine

    def ready(self) -> list[str]:
        return self.missing

    def usage_today(self) -> dict[str, Usage]:
        return self.used

    async def pause(self, until: WallTime | None) -> None:
        self.asked.append(("pause", until))

    async def resume(self) -> None:
        self.asked.append(("resume",))

    async def set_lending(self, enabled: bool) -> None:
        self.asked.append(("lending", enabled))

    async def set_resource(self, resource: str, enabled: bool) -> None:
        self.asked.append(("resource", resource, enabled))

    def release_hold(self, job: JobId) -> bool:
        self.ledger.release(job, ReleasedBy.ADMINISTRATOR, self.clock.now())
        self.asked.append(("release", job))
        return True
