"""What the API needs of the running agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_agent.admin.debug import DebugWindow
    from vacancy_agent.admin.events import Events
    from vacancy_agent.core.conditions import Conditions
    from vacancy_agent.core.effects import PublishPhase
    from vacancy_agent.core.facts import WallTime
    from vacancy_agent.core.job import JobId
    from vacancy_agent.proxy.host import Host
    from vacancy_agent.store.sqlite import Usage
    from vacancy_agent.upstreams.listener_state import ListenerState
    from vacancy_http import Counters


class Running(Protocol):
    """The agent, as seen from its API. Called on the agent's loop."""

    version: str
    host: Host
    conditions: Conditions
    events: Events
    debug: DebugWindow

    @property
    def config_digest(self) -> str | None:
        """Digest of the configuration that runs."""
        ...

    @property
    def config_document(self) -> str:
        """That configuration as JSON, without secrets."""
        ...

    @property
    def abandoned_probes(self) -> int:
        """Programs of probes that were given up since the start, because they hang in the kernel."""
        ...

    @property
    def reclaims(self) -> Mapping[str, PublishPhase]:
        """The last decision of each upstream's reclaim."""
        ...

    @property
    def unloaded(self) -> Mapping[str, tuple[bool | None, str]]:
        """By upstream whether it showed that it let go (None: it is being asked), and what was seen last.

        One that was never asked to unload is missing.
        """
        ...

    def bound(self, upstream: str) -> bool:
        """Whether the upstream's proxy listens."""
        ...

    def server_listener(self, upstream: str) -> ListenerState:
        """Where the upstream's own server listens, as last looked at."""
        ...

    def recent_log(self) -> list[str]:
        """The newest lines of the log, oldest first."""
        ...

    def engine_counters(self) -> Mapping[str, Counters]:
        """The HTTP engine's counts by upstream."""
        ...

    def ready(self) -> list[str]:
        """Why the agent is not ready, one line each; empty: it is."""
        ...

    def usage_today(self) -> Mapping[str, Usage]:
        """What each borrower used since midnight, local time."""
        ...

    async def pause(self, until: WallTime | None) -> None:
        """Stop lending at this machine; None: until `resume`."""
        ...

    async def resume(self) -> None:
        """End a pause made at this machine."""
        ...

    async def set_lending(self, enabled: bool) -> None:
        """The switch at this machine."""
        ...

    async def set_resource(self, resource: str, enabled: bool) -> None:
        """The switch of one resource at this machine."""
        ...

    def release_hold(self, job: JobId) -> bool:
        """Free a hold because the administrator knows that it ended; False: there is no such hold."""
        ...
