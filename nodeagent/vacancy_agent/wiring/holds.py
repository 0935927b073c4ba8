"""Held jobs between the ledger, the journal and the keeper that looks for their proofs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Instant, Seconds
from vacancy_agent.core.job import Hold, JobId, Moved, ReleasedBy
from vacancy_agent.proxy.host import HeldSlot
from vacancy_agent.proxy.prompts import Prompt
from vacancy_agent.store.journal_format import HoldCause
from vacancy_agent.upstreams.ask import ServerClient
from vacancy_agent.upstreams.comfyui import ComfyUi
from vacancy_agent.upstreams.hold_keeper import HoldKeeper, Watched
from vacancy_agent.upstreams.llamacpp import LlamaCpp
from vacancy_agent.upstreams.local import LocalServer
from vacancy_agent.upstreams.ollama_lists import OllamaLists
from vacancy_agent.upstreams.proofs import HeldJob
from vacancy_agent.upstreams.watchers import watcher_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import aiohttp

    from vacancy_agent.core.job import Job
    from vacancy_agent.core.settings import Target, UpstreamSettings
    from vacancy_agent.proxy.host import Host
    from vacancy_agent.proxy.request import Request
    from vacancy_agent.store.journal import HoldJournal, Partition
    from vacancy_agent.store.journal_format import RecoveredHold
    from vacancy_agent.store.state import StateDir
    from vacancy_agent.upstreams.proofs import Ended

GPU_LOOK_S = 1.0
"""How long a look at a GPU's processes takes; its figure stands for now until the next one has come."""
CAUSES = {
    HoldCause.INTERRUPTED: "the agent ended while it ran",
    HoldCause.DAMAGED: "its entry in the hold journal is damaged",
    HoldCause.UNSEEN: "the machine stopped without notice while work may have run",
}


@dataclass(frozen=True, slots=True)
class _Server:
    """One server behind one or more upstreams, kept over a reload: looks at it must stay apart in time."""

    client: ServerClient
    llama: LlamaCpp
    lists: OllamaLists
    comfy: ComfyUi
    local: LocalServer


class Holds:
    """One for a host."""

    def __init__(self, host: Host, journal: HoldJournal, state: StateDir) -> None:
        self._host = host
        self._journal = journal
        self._state = state
        self.locals: dict[str, LocalServer] = {}
        self.clients: dict[str, ServerClient] = {}
        """The server behind each upstream, for whoever else asks it something."""
        self.llamas: dict[str, LlamaCpp] = {}
        """The one place to look at each upstream's slots, if it is a llama-server."""
        self.lists: dict[str, OllamaLists] = {}
        """What each upstream's server lists, if it is an Ollama: whoever reads its list reads it there."""
        self.comfys: dict[str, ComfyUi] = {}
        """Each upstream's server, asked as a ComfyUI."""
        self._servers: dict[tuple[Target, str | None], _Server] = {}
        self.keeper = HoldKeeper(host.clock, self._held, self._ended)

    def restore(self, recovered: Mapping[str, Sequence[RecoveredHold]]) -> None:
        """Take over what the journal kept from an earlier run, or from before the upstream was taken out.

        What the ledger has kept all the while is not taken a second time: its slot could be freed but once.
        """
        now, wall = self._host.clock.now(), self._host.clock.wall()
        for upstream, holds in recovered.items():
            partition = self._journal.partition(upstream)
            known = self._known(partition)
            for hold in holds:
                if hold.slot in known:
                    continue
                started = wall if hold.record is None else min(hold.record.started, wall)
                since = Instant(now - (wall - started))
                (job,) = self._host.ledger.restore([self._entry(upstream, hold, since)], now)
                prompt = self._prompt(upstream, hold)
                self._host.held_slots[job.id] = HeldSlot(partition, hold.slot, started, prompt)
                self._host.tell("held", upstream=upstream, job=job.id, why=job.why)

    def watch(self, session: aiohttp.ClientSession, upstreams: Mapping[str, UpstreamSettings]) -> None:
        """Look after the holds of these upstreams."""
        clock = self._host.clock
        watched = {}
        used = set()
        for name, settings in upstreams.items():
            credential = settings.credential
            secret = None if credential is None else self._state.secret(credential.name, credential.key)
            key = (settings.target, secret)
            if key not in self._servers:
                client = ServerClient(session, settings.target, secret)
                local = LocalServer(settings.target, clock, partial(self._gpu_use, name))
                self._servers[key] = _Server(
                    client, LlamaCpp(client, clock), OllamaLists(client, clock), ComfyUi(client), local
                )
            one = self._servers[key]
            self.locals[name], self.clients[name], self.lists[name] = one.local, one.client, one.lists
            self.comfys[name], self.llamas[name] = one.comfy, one.llama
            watcher = watcher_for(
                settings.dialect, one.client, one.llama, one.local, clock, one.lists, one.comfy
            )
            watched[name] = Watched(watcher, one.local, settings.assume_ended_after)
            used.add(key)
        self._servers = {key: one for key, one in self._servers.items() if key in used}
        for gone in self.locals.keys() - watched.keys():
            del self.locals[gone], self.clients[gone], self.lists[gone], self.comfys[gone], self.llamas[gone]
        self.keeper.configure(watched)

    def _gpu_use(self, upstream: str) -> float | None:
        board = self._host.board
        within = Seconds(board.settings.sampling.pressure_interval + GPU_LOOK_S)
        return board.gpu_use(upstream, self._host.clock.now(), within)

    def release(self, job: JobId, by: ReleasedBy, why: str) -> bool:
        """Free a hold in ledger and journal; False: there is no such hold (any more)."""
        host = self._host
        now = host.clock.now()
        moved = host.ledger.release(job, by, now)
        if not isinstance(moved, Moved):
            return False
        slot = host.held_slots.pop(job, None)
        if slot is not None:
            slot.partition.free(slot.slot)
        host.sampler.soon(moved.idle)
        host.tell("freed", upstream=moved.job.upstream, job=job, by=by.value, why=why)
        host.reclaiming.job_ended(moved.job.upstream, job, now)
        return True

    def _entry(self, upstream: str, hold: RecoveredHold, since: Instant) -> Hold:
        """A slot of the journal as the ledger takes it; a number that another job has is given anew."""
        record, why = hold.record, CAUSES[hold.cause]
        if record is None:
            return Hold(None, upstream, since, why, borrower="unknown")
        number = JobId(record.job)
        free = record.job > 0 and self._host.ledger.job(number) is None
        return Hold(
            number if free else None,
            upstream,
            since,
            why,
            record.borrower,
            record.model or None,
            record.process,
        )

    def _prompt(self, upstream: str, hold: RecoveredHold) -> Prompt | None:
        """The prompt of a hold that the journal kept: it is ours, whatever the queue's other prompts are."""
        record = hold.record
        if record is None or record.prompt is None:
            return None
        known = self._host.board.settings.upstreams.get(upstream)
        if known is not None:
            self._host.prompt_ids.add(known.target, record.prompt)
        return Prompt(record.prompt, record.confirmed)

    def _known(self, partition: Partition) -> set[int]:
        """Slots whose jobs are in the ledger: held, or still under way."""
        host = self._host
        held = {one.slot for one in host.held_slots.values() if one.partition is partition}
        jobs = {request.slot for request in host.requests.values() if _is_of(request, partition)}
        return held | jobs | {one.slot for one in host.tracked.values() if one.partition is partition}

    def _held(self, upstream: str) -> list[HeldJob]:
        return [
            self._held_job(job, job.held_since)
            for job in self._host.ledger.holds(upstream)
            if job.held_since is not None
        ]

    def _held_job(self, job: Job, since: Instant) -> HeldJob:
        slot = self._host.held_slots.get(job.id)
        prompt = None if slot is None else slot.prompt
        if prompt is None:
            return HeldJob(job.id, since, job.process, job.model, job.since)
        return HeldJob(job.id, since, job.process, job.model, job.since, prompt.id, prompt.confirmed)

    def _ended(self, _upstream: str, ended: tuple[Ended, ...]) -> None:
        for one in ended:
            self.release(one.job, one.by, one.why)


def _is_of(request: Request, partition: Partition) -> bool:
    return request.job is not None and request.job.upstream == partition.upstream
