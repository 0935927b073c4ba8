"""The table of proofs, a row for each dialect: whom to ask, and when only the process can tell.

| dialect | looks at |
|---|---|
| llamacpp | `/slots`; without them, or in router mode: the process tree |
| openai | vLLM's gauges; without them: the process tree |
| ollama | `/api/ps` (never its `expires_at`, which moves when a client leaves), and the process tree |
| comfyui | its queue; which prompts are in it |
| chatterbox | `/v1/status`; of the server without it: two answered reads |
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from vacancy_agent.core.settings import Dialect
from vacancy_agent.upstreams import llamacpp
from vacancy_agent.upstreams.ask import AskError
from vacancy_agent.upstreams.chatterbox import ChatterboxWatcher
from vacancy_agent.upstreams.comfyui_watcher import ComfyWatcher
from vacancy_agent.upstreams.ollama_lists import APART
from vacancy_agent.upstreams.openai import NoMetrics, ask_requests
from vacancy_agent.upstreams.sighting import Idle, Unclear, Working
from vacancy_agent.upstreams.waiting import wait_until

if TYPE_CHECKING:
    from vacancy_agent.clock import Clock
    from vacancy_agent.core.facts import Instant
    from vacancy_agent.upstreams.ask import ServerClient
    from vacancy_agent.upstreams.comfyui import ComfyUi
    from vacancy_agent.upstreams.llamacpp import LlamaCpp
    from vacancy_agent.upstreams.local import LocalServer
    from vacancy_agent.upstreams.ollama_lists import OllamaLists
    from vacancy_agent.upstreams.sighting import Sighting, Watcher


class LlamaWatcher:
    """A llama-server."""

    def __init__(self, llama: LlamaCpp, local: LocalServer) -> None:
        """`llama` is shared with whoever else looks at this server."""
        self._llama = llama
        self._local = local

    async def look(self, not_before: Instant) -> Sighting:
        """One look at `/slots`, or at the processes of a server that has none."""
        look = await self._llama.look(not_before)
        match look.slots:
            case llamacpp.SlotsIdle():
                return Idle(look.began, "its slots are idle")
            case llamacpp.Asleep():
                return Idle(look.began, "it sleeps")
            case llamacpp.SlotsBusy(busy, total):
                return Working(look.began, f"{busy} of {total} slots work")
            case llamacpp.NoSlots() | llamacpp.Router():
                return await self._local.look(not_before)
            case llamacpp.Unreachable(why):
                return Unclear(why)


class OpenAiWatcher:
    """vLLM, or another server that speaks its routes."""

    def __init__(self, server: ServerClient, local: LocalServer, clock: Clock) -> None:
        """`server` is asked for its metrics."""
        self._server = server
        self._local = local
        self._clock = clock

    async def look(self, not_before: Instant) -> Sighting:
        """One look at the metrics, or at the processes of a server without them."""
        await wait_until(self._clock, not_before)
        began = self._clock.now()
        try:
            found = await ask_requests(self._server)
        except AskError as error:
            return Unclear(str(error))
        if isinstance(found, NoMetrics):
            return await self._local.look(not_before)
        if found.none:
            return Idle(began, "its metrics show no request")
        return Working(began, f"{found.running:g} requests run, {found.waiting:g} wait")


class OllamaWatcher:
    """An Ollama: a runner that works on for a client who left does so for minutes, without a sign of it."""

    def __init__(self, lists: OllamaLists, local: LocalServer, clock: Clock) -> None:
        """`lists` is shared with whoever else reads the server's list of models."""
        self._lists = lists
        self._local = local
        self._clock = clock

    async def look(self, not_before: Instant) -> Sighting:
        """One look at the list, and, where it shows no model gone just now, at the server's processes."""
        await wait_until(self._clock, not_before)
        began = self._clock.now()
        try:
            listed = await self._lists.residents()
            if self._lists.missing_of_late:
                await asyncio.sleep(APART)
                await self._lists.residents()
                return Working(began, "it has let a model go", self._lists.gone)
        except AskError:
            return await self._local.look(not_before)  # a list may not come while a model loads
        found = await self._local.look(not_before)
        if isinstance(found, Idle):
            return found
        names = ", ".join(one.name for one in listed) or "no model"
        return Working(began, f"it lists {names}, and {found.why}", self._lists.gone)


def watcher_for(
    dialect: Dialect,
    server: ServerClient,
    llama: LlamaCpp | None,
    local: LocalServer,
    clock: Clock,
    lists: OllamaLists | None = None,
    comfy: ComfyUi | None = None,
) -> Watcher:
    """The row of the table for a dialect. Given are `llama` for llamacpp, `lists`: for ollama, `comfy`."""
    if dialect is Dialect.COMFYUI and comfy is not None:
        return ComfyWatcher(comfy, clock)
    if dialect is Dialect.CHATTERBOX:
        return ChatterboxWatcher(server, local, clock)
    if dialect is Dialect.OLLAMA and lists is not None:
        return OllamaWatcher(lists, local, clock)
    if dialect is Dialect.LLAMACPP and llama is not None:
        return LlamaWatcher(llama, local)
    if dialect is Dialect.OPENAI:
        return OpenAiWatcher(server, local, clock)
    return local
