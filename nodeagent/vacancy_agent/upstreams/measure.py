"""How much memory a model takes: loaded once into an empty Ollama, and read from what it lists.

Invariant: what is measured is the model alone, in the context that was asked for, or nothing is. A model that
shares a card with others may be split between card and main memory, and a footprint read off a split one
would admit work that does not fit. Whatever was loaded for it is unloaded again, also where it fails.

The method is the maintainers': load by a request of one word, read `/api/ps`, add headroom.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vacancy_agent.upstreams.ask import AskError
from vacancy_agent.upstreams.ollama_lists import OllamaLists
from vacancy_agent.upstreams.unload import unload_ollama
from vacancy_dialects import canonical_model

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from vacancy_agent.clock import Clock
    from vacancy_agent.core.parse.ollama import Resident
    from vacancy_agent.upstreams.ask import Answer, ServerClient

GONE_WITHIN_S = 5.0
"""For what was loaded by the measurement itself, at its end."""
UNLOADED_WITHIN_S = 30.0
LOOK_S = 0.5
TELL_S = 5.0
"""Between two words about a load that goes on."""
_OK, _BAD_REQUEST, _NOT_FOUND = 200, 400, 404


class MeasureError(Exception):
    """Nothing was measured; the message says why, for people."""


class NoSuchModelError(MeasureError):
    """The server does not have the model."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a loaded model takes."""

    model: str
    """Canonical name."""
    size: int
    """Bytes in all."""
    size_vram: int
    """Bytes of them on cards."""
    context_length: int | None
    """As the server lists it: of all its slots together in some releases."""


class Measure:
    """One server, for the length of one measurement."""

    def __init__(self, client: ServerClient, clock: Clock, say: Callable[[str], None]) -> None:
        """`say` is told what goes on, a sentence at a time."""
        self._client = client
        self._lists = OllamaLists(client, clock)
        self._clock = clock
        self._say = say

    async def loaded(self) -> list[str]:
        """Canonical names of what the server holds now.

        Raises:
            MeasureError: that cannot be read.
        """
        return [canonical_model("ollama", one.name) for one in await self._residents()]

    async def unload(self) -> None:
        """Have the server let go of everything.

        Raises:
            MeasureError: it does not within half a minute.
        """
        deadline = self._clock.now() + UNLOADED_WITHIN_S
        seen = ""

        async def again(why: str) -> bool:
            nonlocal seen
            seen = why
            await asyncio.sleep(LOOK_S)
            return self._clock.now() < deadline

        if not await unload_ollama(self._lists, again):
            raise MeasureError(f"the server did not let go within {UNLOADED_WITHIN_S:.0f} s: {seen}")

    async def measure(self, model: str, num_ctx: int | None, within_s: float) -> Measured:
        """Load the model into the empty server, read what it takes, and unload it.

        Raises:
            NoSuchModelError: the server does not have it.
            MeasureError: it cannot be loaded within `within_s` seconds, or was not alone.
        """
        name = canonical_model("ollama", model)
        try:
            await self._load(model, num_ctx, within_s)
            return _alone(name, await self._residents())
        finally:
            await asyncio.shield(self._forget(model))

    async def _load(self, model: str, num_ctx: int | None, within_s: float) -> None:
        """Ask for one token; a model that only embeds says so, and embeds a word."""
        options: dict[str, Any] = {} if num_ctx is None else {"num_ctx": num_ctx}
        generate = {"model": model, "prompt": "hi", "stream": False, "options": options | {"num_predict": 1}}
        answer = await self._post("/api/generate", generate, within_s)
        if answer.status == _BAD_REQUEST and b"does not support generate" in answer.body:
            embed = {"model": model, "input": "hi", "options": options}
            answer = await self._post("/api/embed", embed, within_s)
        if answer.status == _NOT_FOUND:
            raise NoSuchModelError(f"the server has no model {model}; `ollama pull {model}` gets it")
        if answer.status != _OK:
            raise MeasureError(f"the server could not load it: {answer.status} {_said(answer)}")

    async def _post(self, path: str, body: dict[str, Any], within_s: float) -> Answer:
        async with asyncio.TaskGroup() as group:
            telling = group.create_task(self._tell_of_load())
            answer = await self._answer(path, body, within_s)
            telling.cancel()
        if isinstance(answer, AskError):
            raise MeasureError(f"the model was not loaded: {answer}") from answer
        return answer

    async def _answer(self, path: str, body: dict[str, Any], within_s: float) -> Answer | AskError:
        """A fault is a value here: a task group would make a group of it."""
        try:
            return await self._client.post(path, body, timeout=within_s)
        except AskError as error:
            return error

    async def _tell_of_load(self) -> None:
        async for seconds in _every(TELL_S):
            self._say(f"loading, for {seconds:.0f} s")

    async def _forget(self, model: str) -> None:
        """Leave the server as empty as it was; it says yes a moment before it lets go."""
        deadline = self._clock.now() + GONE_WITHIN_S
        try:
            await self._client.post("/api/generate", {"model": model, "keep_alive": 0})
            while await self._lists.residents():
                if self._clock.now() >= deadline:
                    self._say("it was asked to unload, and has not let go yet")
                    return
                await asyncio.sleep(LOOK_S)
        except AskError as error:
            self._say(f"it was not unloaded: {error}")

    async def _residents(self) -> tuple[Resident, ...]:
        try:
            return await self._lists.residents()
        except AskError as error:
            raise MeasureError(f"what the server holds cannot be read: {error}") from error


def _alone(name: str, residents: tuple[Resident, ...]) -> Measured:
    found = {canonical_model("ollama", one.name): one for one in residents}
    others = sorted(found.keys() - {name})
    if others:
        raise MeasureError(
            f"{', '.join(others)} was loaded beside it: pause lending (vacancy pause), and measure again"
        )
    if name not in found:
        raise MeasureError("the server answered, and lists no model as loaded")
    one = found[name]
    return Measured(name, one.size, one.size_vram, one.context_length)


def _said(answer: Answer) -> str:
    try:
        said = answer.json()
    except AskError:
        return ""
    return str(said.get("error", ""))[:500] if isinstance(said, dict) else ""


async def _every(seconds: float) -> AsyncIterator[float]:
    passed = 0.0
    while True:
        await asyncio.sleep(seconds)
        passed += seconds
        yield passed
