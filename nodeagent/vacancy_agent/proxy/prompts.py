"""ComfyUI submissions: work that begins with its reply.

Invariant: before a submission is forwarded its prompt id is in the journal, and from then on the job is
released only when the server shows that this prompt has ended. The failure this prevents: the reply comes in
milliseconds, the card is promised to the next request, and the prompt runs on for minutes. Rejected: to hold
the borrower's connection open until it ends; clients fetch their results by the id in the reply.

What the borrower's client does after the reply means nothing: a client that leaves ends no prompt (run).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from vacancy_agent.core.parse.comfyui import parse_submitted
from vacancy_agent.store.journal_format import Phase
from vacancy_edge.comfy_clients import foreign_client

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from vacancy_agent.core.facts import Instant, WallTime
    from vacancy_agent.core.job import Job
    from vacancy_agent.core.settings import UpstreamSettings
    from vacancy_agent.proxy.app import GatedProxy
    from vacancy_agent.proxy.request import Request
    from vacancy_agent.store.journal import Partition
    from vacancy_dialects import PromptAsk
    from vacancy_edge import Judged, Refusal
    from vacancy_http import Exchange

MOST_IDS = 1 << 14
"""Ids are forgotten past this many, the oldest first: their prompts have long ended."""
MAX_REPLY = 64 << 10
REFUSED = range(400, 500)
"""Such an answer to a submission is its end: the graph was not taken."""


class PromptIds:
    """The prompt ids that were forwarded, by server."""

    def __init__(self) -> None:
        self._ids: dict[tuple[Hashable, str], None] = {}

    def add(self, server: Hashable, prompt_id: str) -> None:
        """This id is a borrower's."""
        self._ids[server, prompt_id] = None
        if len(self._ids) > MOST_IDS:
            del self._ids[next(iter(self._ids))]

    def known(self, server: Hashable, prompt_id: str) -> bool:
        """Whether it is."""
        return (server, prompt_id) in self._ids


@dataclass(slots=True, eq=False)
class Prompt:
    """The prompt of a job. `confirmed`: the server has answered with this id."""

    id: str
    confirmed: bool = False
    reply: bytearray = field(default_factory=bytearray, repr=False)

    def take(self, piece: bytes) -> None:
        """Keep the reply to the submission; one that is too long for a reply is not read."""
        if len(self.reply) <= MAX_REPLY:
            self.reply += piece


@dataclass(slots=True, eq=False)
class Tracked:
    """A job whose prompt waits or runs, and where the journal has it."""

    upstream: str
    borrower: str
    prompt: Prompt
    partition: Partition
    slot: int
    started: WallTime
    landed: Instant
    """When the submission was answered."""


def prepared(proxy: GatedProxy, x: Exchange, request: Request, judged: Judged) -> Judged | Refusal:
    """A submission as it may be decided on: its client id is the borrower's, its prompt id nobody's yet."""
    host, ask, server = proxy.host, judged.prompt, proxy.settings.target
    assert ask is not None  # noqa: S101 - only called for submissions
    borrower, client_id = request.plan.borrower, ask.client_id
    if client_id and not host.client_ids.claim(server, client_id, borrower, host.clock.now()):
        return foreign_client(client_id)
    forward = judged.forward
    if ask.own and host.prompt_ids.known(server, ask.prompt_id):
        ask = replace(ask, prompt_id=str(uuid4()), own=False)
        forward = _exchanged(x, forward, ask)
    upstream = host.board.settings.upstreams.get(proxy.name, proxy.settings)
    return msgspec.structs.replace(judged, model=heaviest(upstream, ask.models), forward=forward, prompt=ask)


def heaviest(upstream: UpstreamSettings, models: Iterable[str | None]) -> str | None:
    """Of the models that a graph names, the one with the largest footprint; None: its default is the largest.

    The server has them on the card one after the other or side by side, as it likes; so the largest is the
    least that it needs, and whoever names a small one beside a large one gains nothing.
    """

    def need(model: str | None) -> int:
        known = upstream.default_footprint if model is None else upstream.footprints.get(model)
        return (known or upstream.default_footprint).min_free

    return max(models, key=need, default=None)


def admitted(proxy: GatedProxy, x: Exchange, request: Request, ask: PromptAsk) -> None:
    """The job is in the journal: put its prompt beside it, and listen for the reply."""
    request.prompt = prompt = Prompt(ask.prompt_id)
    proxy.partition.note_prompt(request.slot, prompt.id, confirmed=False)
    proxy.host.prompt_ids.add(proxy.settings.target, prompt.id)
    x.tap = prompt.take


def landed(proxy: GatedProxy, x: Exchange, request: Request, job: Job, now: Instant) -> bool:
    """A submission's reply is complete; whether its prompt may be in the queue now, and is tracked."""
    prompt, host = request.prompt, proxy.host
    if prompt is None or x.status in REFUSED or not x.sent_to_upstream:
        return False
    assert request.started is not None  # noqa: S101 - set with the job
    answered = parse_submitted(bytes(prompt.reply))
    if answered is not None:
        prompt.id, prompt.confirmed = answered, True
        proxy.partition.note_prompt(request.slot, answered, confirmed=True)
        host.prompt_ids.add(proxy.settings.target, answered)
    prompt.reply.clear()
    host.ledger.track(job.id, now)
    proxy.partition.mark(request.slot, Phase.TRACKING)
    host.tracked[job.id] = Tracked(
        proxy.name, job.borrower, prompt, proxy.partition, request.slot, request.started, now
    )
    host.track()
    return True


def _exchanged(x: Exchange, forward: bytes | None, ask: PromptAsk) -> bytes | None:
    """The body with another id of the same length in the place of the one it has."""
    new = ask.prompt_id.encode()
    if forward is None:
        if x.body is not None:
            x.body.overwrite(len(x.body) - ask.from_end, new)
        return None
    at = len(forward) - ask.from_end
    return forward[:at] + new + forward[at + len(new) :]
