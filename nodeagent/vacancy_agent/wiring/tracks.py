"""Prompts that go on after their submission: looked at until they end, cancelled when the owner returns.

Invariant: a tracked job is released when the server shows that its prompt is gone, and by nothing else; where
the server does not answer for half a minute the job becomes a hold, which says so and which an administrator
can free. One task per upstream looks, for as long as there is something to look at, and one cancels.

A cancelled submission may still be on its way into the queue when its connection is cut. So what is to be
cancelled is looked for until its job has ended, not once; ids are ours from before they are forwarded.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Instant, Seconds
from vacancy_agent.core.job import Moved, ReleasedBy
from vacancy_agent.core.settings import OnOwnerReturn
from vacancy_agent.proxy.host import HeldSlot, Used
from vacancy_agent.store.journal_format import Phase
from vacancy_agent.upstreams.ask import AskError
from vacancy_agent.upstreams.comfyui_cancel import Cancelling
from vacancy_agent.upstreams.comfyui_ends import Asked, ended
from vacancy_agent.upstreams.comfyui_free import NotShown, free

if TYPE_CHECKING:
    from vacancy_agent.core.job import JobId
    from vacancy_agent.core.settings import Target
    from vacancy_agent.proxy.host import Host
    from vacancy_agent.proxy.prompts import Prompt, Tracked
    from vacancy_agent.upstreams.comfyui import ComfyUi
    from vacancy_agent.upstreams.comfyui_free import Again, Freed, Skipped
    from vacancy_agent.wiring.holds import Holds

FIRST, LONGEST = Seconds(0.25), Seconds(1.0)
"""Between two looks; each doubles the wait, up to the second figure."""
DUE_EVERY = 5
"""Looks after which the queue is read even though nothing seems to have changed."""
GIVE_UP = Seconds(30.0)
"""Without an answer for this long, a tracked job is held."""
CANCEL_FIRST, CANCEL_LONGEST = Seconds(0.1), Seconds(1.0)
CANCEL_TOLD = Seconds(10.0)
"""After this, that prompts still run is told."""


class Tracks:
    """One for a host."""

    def __init__(self, host: Host, holds: Holds) -> None:
        """`holds` knows the servers. `host.track` is to be `nudge`."""
        self._host = host
        self._holds = holds
        self._wake = asyncio.Event()
        self._following: set[str] = set()
        self._doomed: dict[str, set[JobId]] = {}

    def nudge(self) -> None:
        """A job is tracked since a moment."""
        self._wake.set()

    async def run(self) -> None:
        """Look until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._wake.wait()
                self._wake.clear()
                for upstream in {tracked.upstream for tracked in self._host.tracked.values()}:
                    if upstream not in self._following:
                        self._following.add(upstream)
                        group.create_task(self._follow(upstream))

    def cancel(self, upstream: str, jobs: tuple[JobId, ...]) -> None:
        """Stop the prompts of these jobs, and no others (`proxy.cutter`)."""
        doomed = self._doomed.get(upstream)
        if doomed is not None:
            doomed.update(jobs)
            return
        self._doomed[upstream] = set(jobs)
        self._host.spawn(self._cancel(upstream))

    def held(self, upstream: str) -> frozenset[JobId]:
        """The held jobs whose prompt may go on."""
        holds = self._host.ledger.holds(upstream)
        return frozenset(job.id for job in holds if self._prompt_of(job.id) is not None)

    async def free(self, upstream: str, again: Again) -> Freed | Skipped | NotShown:
        """Have the server of an upstream unload, unless somebody else uses it.

        Prompts that nobody waits for any more would keep it from doing so; they are cancelled, except where
        the owner lets accepted work finish.
        """
        host, server = self._host, self._holds.comfys.get(upstream)
        settings = host.board.settings.upstreams.get(upstream)
        if server is None or settings is None:
            return NotShown("it is not configured any more")
        held = self.held(upstream)
        if held and settings.on_owner_return is not OnOwnerReturn.FINISH:
            self.cancel(upstream, tuple(sorted(held)))
        target = settings.target
        return await free(
            server,
            lambda prompt_id: self._is_ours(target, prompt_id),
            again,
            unconfirmed=await self._unconfirmed(target, server),
        )

    async def _unconfirmed(self, target: Target, server: ComfyUi) -> bool:
        """Whether a submission may be in the server's queue under an id that only the server knows."""
        host = self._host
        upstreams = {name for name, one in host.board.settings.upstreams.items() if one.target == target}
        jobs = [job.id for job in host.ledger.jobs() if job.upstream in upstreams]
        forwarded = [host.requests[job].prompt for job in jobs if job in host.requests]
        prompts = [*forwarded, *map(self._prompt_of, jobs)]
        if all(prompt is None or prompt.confirmed for prompt in prompts):
            return False
        try:
            return not await server.keeps_ids()
        except AskError:
            return True

    # Looking.

    async def _follow(self, upstream: str) -> None:
        looks, pause, silent_since = 0, FIRST, None
        try:
            while tracked := self._tracked(upstream):
                due = looks % DUE_EVERY == DUE_EVERY - 1
                try:
                    await self._look(upstream, tracked, due=due)
                    silent_since = None
                except AskError as error:
                    silent_since = silent_since or self._host.clock.now()
                    await self._unanswered(upstream, tracked, silent_since, str(error))
                fresh = self._tracked(upstream).keys() - tracked.keys()
                pause = FIRST if fresh else min(Seconds(pause * 2), LONGEST)
                looks += 1
                await asyncio.sleep(pause)
        finally:
            self._following.discard(upstream)
            self._wake.set()

    async def _look(self, upstream: str, tracked: dict[JobId, Tracked], *, due: bool) -> None:
        server = self._holds.comfys.get(upstream)
        if server is None:
            raise AskError("its upstream is not configured any more")
        asked = [Asked(one.prompt.id, one.prompt.confirmed) for one in tracked.values()]
        gone = await ended(server, asked, due=due)
        for job, one in tracked.items():
            if one.prompt.id in gone:
                self._release(job, ReleasedBy.PROOF)

    async def _unanswered(
        self, upstream: str, tracked: dict[JobId, Tracked], since: Instant, why: str
    ) -> None:
        server, local = self._holds.comfys.get(upstream), self._holds.locals.get(upstream)
        if server is not None:
            server.forget()
        for job in tracked:
            known = self._host.ledger.job(job)
            if known is None or local is None or known.process is None:
                continue
            if await local.replaced(known.process, known.since):
                self._release(job, ReleasedBy.REPLACED)
        if self._host.clock.now() - since >= GIVE_UP:
            for job in tracked:
                self._hold(job, f"whether its prompt has ended is not known: {why}")

    def _tracked(self, upstream: str) -> dict[JobId, Tracked]:
        return {job: one for job, one in self._host.tracked.items() if one.upstream == upstream}

    def _release(self, job: JobId, by: ReleasedBy) -> None:
        host = self._host
        now = host.clock.now()
        tracked = host.tracked.get(job)
        moved = host.ledger.release(job, by, now)
        if tracked is None or not isinstance(moved, Moved):
            return
        del host.tracked[job]
        tracked.partition.free(tracked.slot)
        host.sampler.soon(moved.idle)
        self._count(tracked, now)
        models = host.models.get(tracked.upstream)
        if models is not None:
            models.watched.soon()
        host.reclaiming.job_ended(tracked.upstream, job, now)

    def _hold(self, job: JobId, why: str) -> None:
        host = self._host
        now = host.clock.now()
        tracked = host.tracked.pop(job, None)
        if tracked is None:
            return
        host.ledger.hold(job, why, now)
        tracked.partition.mark(tracked.slot, Phase.HELD)
        host.held_slots[job] = HeldSlot(tracked.partition, tracked.slot, tracked.started, tracked.prompt)
        self._count(tracked, now)
        host.tell("held", upstream=tracked.upstream, job=job, why=why)
        host.held()
        host.reclaiming.job_ended(tracked.upstream, job, now)

    def _count(self, tracked: Tracked, now: Instant) -> None:
        """What it used after its submission was answered; the rest was counted then."""
        self._host.used.setdefault(tracked.borrower, Used()).seconds += now - tracked.landed

    # Cancelling.

    async def _cancel(self, upstream: str) -> None:
        host, pause = self._host, CANCEL_FIRST
        round_ = Cancelling(host.clock)
        told = Instant(host.clock.now() + CANCEL_TOLD)
        try:
            while prompts := self._still_doomed(upstream):
                why = await self._cancel_once(upstream, round_, prompts)
                if why and host.clock.now() >= told:
                    host.tell("prompts still run", upstream=upstream, prompts=len(prompts), why=why)
                    told = Instant(told + 6 * CANCEL_TOLD)
                await asyncio.sleep(pause)
                pause = min(Seconds(pause * 2), CANCEL_LONGEST)
        finally:
            self._doomed.pop(upstream, None)

    async def _cancel_once(self, upstream: str, round_: Cancelling, prompts: dict[JobId, Prompt]) -> str:
        """One round; why a prompt still runs."""
        server = self._holds.comfys.get(upstream)
        settings = self._host.board.settings.upstreams.get(upstream)
        if server is None or settings is None:
            self._doomed[upstream].clear()
            return "its upstream is not configured any more"
        target = settings.target
        try:
            queue = await round_.once(
                server, {prompt.id for prompt in prompts.values()}, lambda one: self._is_ours(target, one)
            )
        except AskError as error:
            return str(error)
        for job, prompt in prompts.items():
            if prompt.confirmed and prompt.id not in queue and job in self._host.tracked:
                self._release(job, ReleasedBy.PROOF)
        return round_.why

    def _is_ours(self, target: Target, prompt_id: str) -> bool:
        """Whether a prompt is a borrower's; also where so many came since that its id was forgotten."""
        host = self._host
        if host.prompt_ids.known(target, prompt_id):
            return True
        under_way = (
            *(tracked.prompt for tracked in host.tracked.values()),
            *(held.prompt for held in host.held_slots.values()),
            *(request.prompt for request in host.requests.values()),
        )
        return any(prompt is not None and prompt.id == prompt_id for prompt in under_way)

    def _still_doomed(self, upstream: str) -> dict[JobId, Prompt]:
        doomed = self._doomed[upstream]
        found = {job: prompt for job in doomed if (prompt := self._prompt_of(job)) is not None}
        doomed.intersection_update(found)
        return found

    def _prompt_of(self, job: JobId) -> Prompt | None:
        """The prompt of a job that has not ended."""
        tracked, held = self._host.tracked.get(job), self._host.held_slots.get(job)
        if tracked is not None:
            return tracked.prompt
        return None if held is None else held.prompt
