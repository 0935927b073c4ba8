"""Which prompts have ended, with as few looks at the queue as prove it.

1. Nothing waits or runs: all have ended.
2. The cheap question about each says that it is there, or, to a release that tells only of ends, nothing:
   none has, unless a look is due anyway. (What was deleted is silent, too.)
3. Otherwise the queue is read: what is not in it has ended.

A submission without a reply may be known to the server by another id (before 0.3.45), so only 1 ends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vacancy_agent.core.parse.comfyui import PromptState

if TYPE_CHECKING:
    from collections.abc import Collection

    from vacancy_agent.upstreams.comfyui import ComfyUi


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt that may be the server's."""

    id: str
    confirmed: bool
    """The server has answered with this id."""


async def ended(server: ComfyUi, prompts: Collection[Asked], *, due: bool = False) -> frozenset[str]:
    """The ids of these prompts that have ended.

    Args:
        server: is asked.
        prompts: were all submitted, and their connections closed, before this call.
        due: read the queue even where nothing says that it changed.

    Raises:
        AskError: it did not tell.
    """
    if await server.remaining() == 0:  # 1
        return frozenset(prompt.id for prompt in prompts)
    keeps = await server.keeps_ids()
    known = [prompt.id for prompt in prompts if prompt.confirmed or keeps]
    if not known or not (due or await _any_gone(server, known)):  # 2
        return frozenset()
    queue = await server.queue()  # 3
    return frozenset(one for one in known if one not in queue)


async def _any_gone(server: ComfyUi, prompt_ids: list[str]) -> bool:
    here = {PromptState.THERE} if await server.has_jobs() else {PromptState.THERE, PromptState.UNTOLD}
    for prompt_id in prompt_ids:
        if await server.state(prompt_id) not in here:
            return True
    return False
