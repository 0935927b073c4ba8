"""What a server holds, asked in its own dialect.

Invariant: a look is dated by when its question was sent, so that it never counts as newer than what happened
while the answer was on its way. An answer that does not come or cannot be read is an error, never an empty
holding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from vacancy_agent.core.facts import Instant, MiB, Ready
from vacancy_agent.core.parse.comfyui import ComfyAnswerError, parse_system_stats
from vacancy_agent.core.settings import Dialect
from vacancy_agent.core.shown import ModelShown, ModelsShown, PoolShown, SlotsShown
from vacancy_agent.upstreams.ask import AskError, NoAnswerError
from vacancy_agent.upstreams.llamacpp import Asleep, NoSlots, Router, SlotsIdle, Unreachable
from vacancy_agent.upstreams.ollama import OllamaServer
from vacancy_dialects import canonical_model

if TYPE_CHECKING:
    from vacancy_agent.clock import Clock
    from vacancy_agent.core.contexts import Contexts
    from vacancy_agent.core.facts import WallTime
    from vacancy_agent.core.parse.ollama import Resident
    from vacancy_agent.core.shown import Shown
    from vacancy_agent.upstreams.ask import ServerClient
    from vacancy_agent.upstreams.llamacpp import LlamaCpp, Slots
    from vacancy_agent.upstreams.ollama_lists import OllamaLists

STATS_WITHIN_S = 2.0
_OK = 200


class Holdings(Protocol):
    """One server, asked what it holds."""

    async def look(self) -> Ready[Shown]:
        """What it holds now.

        Raises:
            AskError: it does not say.
        """
        ...


def holdings_of(
    dialect: Dialect,
    client: ServerClient,
    llama: LlamaCpp,
    lists: OllamaLists,
    contexts: Contexts,
    clock: Clock,
) -> Holdings | None:
    """How a server of that dialect is asked; None: it tells nothing of the kind."""
    match dialect:
        case Dialect.OLLAMA:
            return OllamaHoldings(lists, contexts, clock)
        case Dialect.LLAMACPP:
            return LlamaHoldings(llama, clock)
        case Dialect.COMFYUI:
            return ComfyHoldings(client, clock)
        case _:
            return None


class OllamaHoldings:
    """The list of models; of each new one, what its Modelfile sets."""

    def __init__(self, lists: OllamaLists, contexts: Contexts, clock: Clock) -> None:
        self._lists = lists
        self._contexts = contexts
        self._clock = clock

    async def look(self) -> Ready[Shown]:
        """What is listed."""
        began, wall = self._clock.now(), self._clock.wall()
        shown = ModelsShown(tuple(_model(row, began, wall) for row in await self._lists.residents()))
        for model in self._contexts.unread(shown):
            await self._read_modelfile(model)
        return Ready(shown, began)

    async def _read_modelfile(self, model: ModelShown) -> None:
        try:
            set_there = (await OllamaServer(self._lists.client).show(model.name)).num_ctx
        except NoAnswerError:
            return  # busy: another look asks again
        except AskError:
            set_there = None  # asked once: what cannot be read earns no credit
        self._contexts.modelfile(model.digest, set_there)


class LlamaHoldings:
    """The slots, through the one place that looks at them."""

    def __init__(self, llama: LlamaCpp, clock: Clock) -> None:
        self._llama = llama
        self._clock = clock

    async def look(self) -> Ready[Shown]:
        """What the slots show."""
        look = await self._llama.look(self._clock.now())
        if isinstance(look.slots, Unreachable):
            raise AskError(look.slots.why)
        return Ready(_slots(look.slots), look.began)


class ComfyHoldings:
    """What the allocator of its one card holds."""

    def __init__(self, client: ServerClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def look(self) -> Ready[Shown]:
        """What it holds."""
        began = self._clock.now()
        answer = await self._client.get("/system_stats", timeout=STATS_WITHIN_S)
        if answer.status != _OK:
            raise AskError(f"/system_stats answered {answer.status}")
        try:
            stats = parse_system_stats(answer.body)
        except ComfyAnswerError as error:
            raise AskError(str(error)) from error
        if len(stats.devices) != 1 or len(stats.cuda) != 1:
            return Ready(PoolShown(None, "the server does not compute on exactly one cuda device"), began)
        return Ready(PoolShown(MiB(stats.cuda[0].torch_vram_total >> 20)), began)


def _model(row: Resident, began: Instant, wall: WallTime) -> ModelShown:
    expires = None if row.expires_at is None else Instant(began + (row.expires_at - wall))
    name = canonical_model("ollama", row.name)
    return ModelShown(name, row.digest, row.context_length, expires, row.size, row.size_vram)


def _slots(slots: Slots) -> SlotsShown:
    match slots:
        case SlotsIdle():
            return SlotsShown(idle=True)
        case NoSlots():
            return SlotsShown(idle=False, why="the server shows no slots")
        case Asleep():
            return SlotsShown(idle=False, why="the server sleeps without its model", held=False)
        case Router():
            return SlotsShown(idle=False, why="the server is a router", held=False)
        case _:
            return SlotsShown(idle=False)
