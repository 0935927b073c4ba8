"""Asks a server to let go of its memory, and looks whether it did.

Invariant: only what the server shows afterwards counts, never that it said yes. (Ollama answered the unload
with 200 and listed the model for another 90 s: ollama/ollama#7606.) And each model is asked for once, however
long it stays: a server that is stuck is not helped by more of what it is stuck on. Rejected: a bounded number
of repeated requests, which on a server that queues them are worked off when the owner plays again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from vacancy_agent.upstreams.ask import AskError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from vacancy_agent.upstreams.ollama_lists import OllamaLists

    Again = Callable[[str], Awaitable[bool]]
    """Told what the last look showed, for people; returns when it is time for another, False for none."""

POST_WITHIN_S = 10.0
"""Seconds for the answer to one unload. The server may hang on it and let go all the same."""
_OK = 200


async def unload_ollama(server: OllamaLists, again: Again) -> bool:
    """Unload every model that `/api/ps` lists now, and read it again until it lists none.

    A list that cannot be read at first is read again like any other; the models are asked for once there is
    one. What is loaded later is not ours to throw out: the owner may be using it, and it keeps the answer
    from being True.

    Returns:
        True: the server listed no model. False: `again` wanted no further look.
    """
    asked: list[asyncio.Task[None]] = []
    trouble: dict[str, str] = {}
    async with asyncio.TaskGroup() as group:
        try:
            while True:
                try:
                    held = [one.name for one in await server.residents()]
                except AskError as error:
                    why = f"whether it holds a model cannot be read: {error}"
                else:
                    if not held:
                        return True
                    if not asked:
                        asked = [group.create_task(_ask(server, name, trouble)) for name in held]
                    why = _still(held, trouble)
                if not await again(why):
                    return False
        finally:
            for task in asked:
                task.cancel()


async def _ask(server: OllamaLists, model: str, trouble: dict[str, str]) -> None:
    """The documented unload. With this body Ollama never loads a model."""
    try:
        answer = await server.client.post(
            "/api/generate", {"model": model, "keep_alive": 0}, timeout=POST_WITHIN_S
        )
    except AskError as error:
        trouble[model] = str(error)
    else:
        if answer.status != _OK:
            trouble[model] = f"answered {answer.status} to its unload"


def _still(held: list[str], trouble: dict[str, str]) -> str:
    listed = f"it still lists {', '.join(held)}"
    told = [f"{model}: {trouble[model]}" for model in held if model in trouble]
    return "; ".join([listed, *told])
