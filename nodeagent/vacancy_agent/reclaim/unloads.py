"""The unloads under way, and the slow watch on those that were not shown in time.

Invariant: an unload runs beside everything else, at most one for each upstream, so that a dead server delays
neither the next presence sample nor its neighbours. The machine keeps the deadline; here it only sets the
pace. After it the looks go on slowly until the server shows that it let go, or lending resumes and nobody
wants to know any more: the condition must become true once it is true.

No credit rests on what the server showed before: the board is told when an unload begins and when it ends.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vacancy_agent.core.reclaim import trigger_gone
from vacancy_agent.core.settings import Dialect
from vacancy_agent.upstreams.comfyui_free import Freed, Skipped
from vacancy_agent.upstreams.unload import unload_ollama

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping
    from typing import Any

    from vacancy_agent.core import effects as on
    from vacancy_agent.core.facts import Instant
    from vacancy_agent.core.settings import UpstreamSettings
    from vacancy_agent.proxy.host import Host
    from vacancy_agent.upstreams.comfyui_free import Again, NotShown
    from vacancy_agent.upstreams.ollama_lists import OllamaLists

    Free = Callable[[str, Again], Awaitable[Freed | Skipped | NotShown]]
    Report = Callable[[str, int, bool], None]
    Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]

FIRST_S, LONGEST_S = 0.1, 1.0
"""Between two looks before the deadline; each doubles the wait, up to the second figure."""
SLOWLY_S = 5.0
"""Between two looks after it."""


@dataclass(slots=True)
class Unloading:
    """One unload, as far as it has come."""

    upstream: UpstreamSettings
    attempt: int
    deadline: Instant
    why: str = "it was asked to unload"
    """What the last look showed; for people."""
    task: asyncio.Task[None] | None = None


class Unloads:
    """One for a host."""

    def __init__(
        self,
        host: Host,
        spawn: Spawn,
        lists: Callable[[str], OllamaLists | None],
        report: Report,
    ) -> None:
        """Unload nothing yet.

        Args:
            host: whose board is told, and asked whether lending has resumed.
            spawn: starts a task of the agent; `report` must not be called by one that was cancelled.
            lists: what the server behind an upstream lists.
            report: upstream, attempt, and whether the server showed that it let go.
        """
        self._host = host
        self._spawn = spawn
        self._lists = lists
        self._report = report
        self.free: Free | None = None
        """Has the ComfyUI behind an upstream unload; set by whoever follows its prompts."""
        self.last: dict[str, Unloading] = {}
        """The newest unload of each upstream, for `/status`."""

    def seen(self, claims: Mapping[str, bool | None]) -> Mapping[str, tuple[bool | None, str]]:
        """The machines' claims, each with what the last look showed."""
        return {
            name: (shown, self.last[name].why if name in self.last else "nobody could ask it")
            for name, shown in claims.items()
        }

    def start(self, effect: on.Unload) -> None:
        """Begin an unload; one of the same upstream that is still watched ends."""
        upstream = self._host.board.settings.upstreams.get(effect.upstream)
        lists = self._lists(effect.upstream)
        if upstream is None or lists is None:
            return  # the machine reports at its deadline
        known = self.last.get(effect.upstream)
        if known is not None and known.task is not None:
            known.task.cancel()
        unloading = Unloading(upstream, effect.attempt, effect.deadline)
        self.last[effect.upstream] = unloading
        self._tell_of_holds(effect.upstream)
        unloading.task = self._spawn(self._unload(unloading, lists))

    async def _unload(self, unloading: Unloading, lists: OllamaLists) -> None:
        self._let_go(unloading)
        try:
            shown = await self._asked(unloading, lists)
        finally:
            self._let_go(unloading)
            unloading.task = None
        if shown:
            unloading.why = "it showed that it let go"
        self._report(unloading.upstream.name, unloading.attempt, shown)

    async def _asked(self, unloading: Unloading, lists: OllamaLists) -> bool:
        """Whether it was shown."""
        pause = FIRST_S

        async def again(why: str) -> bool:
            nonlocal pause
            unloading.why = why
            late = self._host.clock.now() >= unloading.deadline
            if late and self._lends_again(unloading):
                return False
            await asyncio.sleep(SLOWLY_S if late else pause)
            pause = min(2 * pause, LONGEST_S)
            return True

        if unloading.upstream.dialect is Dialect.OLLAMA:
            return await unload_ollama(lists, again)
        if self.free is None:
            return False
        came = await self.free(unloading.upstream.name, again)
        if isinstance(came, Skipped):
            self._host.tell("unload skipped", upstream=unloading.upstream.name, why=came.why)
        if not isinstance(came, Freed):
            unloading.why = came.why
        return isinstance(came, Freed)

    def _lends_again(self, unloading: Unloading) -> bool:
        """By admission's own checks; also when the upstream was configured away or is another server now."""
        board, clock = self._host.board, self._host.clock
        known = board.settings.upstreams.get(unloading.upstream.name)
        if known is None or known.target != unloading.upstream.target:
            return True
        return trigger_gone(board, known, (), clock.now()) and board.lending(clock.wall()).allowed

    def _let_go(self, unloading: Unloading) -> None:
        self._host.board.let_go(unloading.upstream.requires, self._host.clock.now())

    def _tell_of_holds(self, upstream: str) -> None:
        """Held work defers no unload; it keeps its place, and the log says beside what was unloaded."""
        for job in self._host.ledger.holds(upstream):
            self._host.tell("unloads beside a hold", upstream=upstream, job=job.id, why=job.why)
