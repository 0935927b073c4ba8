"""Stops prompts of a ComfyUI: ours, by the narrowest request that the release has.

Invariant: only ids that the queue showed just now are named: waiting ones are deleted from it, a running one
is stopped, in releases that compare ids. Deleting what runs and interrupting what waits do nothing and say
nothing (run), so the queue is read again each time. Before 0.3.57 only whatever runs can be stopped; that is
done where nobody else's prompt is in the queue. From then up to 0.25 the interrupt can still hit the next
prompt, when the named one ends in between; only `POST /api/jobs/{id}/cancel` (0.26.0) cannot.

Rejected: one cancel for both kinds where there is one. A waiting prompt that begins to run between the look
and the request is then stopped by its next round, and every release takes the same path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Instant, Seconds

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from vacancy_agent.clock import Clock
    from vacancy_agent.upstreams.comfyui import ComfyUi, Queue

ASK_AGAIN = Seconds(3.0)
"""A stop is noticed at the next step of a node (seen: 1.9 s); one that was not by then is asked for again."""


class Cancelling:
    """Rounds for one server, until what is to be stopped is gone."""

    def __init__(self, clock: Clock) -> None:
        """The release is asked for at the first round."""
        self._clock = clock
        self._asked: dict[str, Instant] = {}
        self._begun = False
        self.why = ""
        """Why something still runs, as the last round saw it; empty: nothing of it is in the queue."""

    async def once(self, server: ComfyUi, prompt_ids: AbstractSet[str], ours: Callable[[str], bool]) -> Queue:
        """Look at the queue, and stop what is in it of these.

        Returns:
            The queue as it was before.

        Raises:
            AskError: it does not tell, or does not take it.
        """
        if not self._begun:
            server.forget()
            self._begun = True
        queue = await server.queue()
        waiting, running = queue.pending & prompt_ids, queue.running & prompt_ids
        self.why = f"{len(waiting)} wait, {len(running)} run" if waiting or running else ""
        if waiting:
            await server.delete(sorted(waiting))
        alone = all(map(ours, queue.ids))
        for prompt_id in sorted(running):
            await self._stop(server, prompt_id, alone=alone)
        return queue

    async def _stop(self, server: ComfyUi, prompt_id: str, *, alone: bool) -> None:
        now = self._clock.now()
        if now - self._asked.get(prompt_id, Instant(-ASK_AGAIN)) < ASK_AGAIN:
            return
        if await server.stop(prompt_id, alone=alone):
            self._asked[prompt_id] = now
        else:
            self.why = "this release stops whatever runs, and somebody else's prompt is in the queue"
