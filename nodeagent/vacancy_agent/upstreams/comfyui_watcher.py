"""What a look at a ComfyUI shows of held jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.upstreams.ask import AskError
from vacancy_agent.upstreams.sighting import Idle, Unclear, Working
from vacancy_agent.upstreams.waiting import wait_until

if TYPE_CHECKING:
    from vacancy_agent.clock import Clock
    from vacancy_agent.core.facts import Instant
    from vacancy_agent.upstreams.comfyui import ComfyUi
    from vacancy_agent.upstreams.sighting import Sighting


class ComfyWatcher:
    """A ComfyUI: nothing there, or which prompts are."""

    def __init__(self, comfy: ComfyUi, clock: Clock) -> None:
        """`comfy` is shared with whoever else asks this server."""
        self._comfy = comfy
        self._clock = clock

    async def look(self, not_before: Instant) -> Sighting:
        """One look at how many prompts are left, and at which, where there are any."""
        await wait_until(self._clock, not_before)
        began = self._clock.now()
        try:
            if await self._comfy.remaining() == 0:
                return Idle(began, "its queue is empty")
            keeps = await self._comfy.keeps_ids()
            queue = await self._comfy.queue()
        except AskError as error:
            self._comfy.forget()
            return Unclear(str(error))
        why = f"{len(queue.running)} prompts run, {len(queue.pending)} wait"
        return Working(began, why, prompts=queue.ids, keeps_ids=keeps)
