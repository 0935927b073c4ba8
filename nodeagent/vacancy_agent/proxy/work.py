"""The path of a work request: judge its body, decide, reserve, forward, and what its end proves.

Invariant: between the gate's yes and the written journal slot nothing else runs on the loop, and no job
leaves this module's hands without being either released or held, exactly once. The failure this prevents is
a slot that is lost with a client that left at an unlucky moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.core.gate import Ask, standing
from vacancy_agent.core.settings import ResourceType
from vacancy_agent.core.verdict import Refuse, sentence
from vacancy_agent.proxy import own_ids, prompts
from vacancy_agent.proxy.counters import Outcome
from vacancy_agent.proxy.host import HeldSlot, Used
from vacancy_agent.proxy.models import LOOK_WITHIN
from vacancy_agent.proxy.proof import held_because, outcome
from vacancy_agent.store.journal import JournalFullError
from vacancy_agent.store.journal_format import Phase
from vacancy_api.reasons import Reason
from vacancy_dialects import EndWatch, RouteClass, needs_marker
from vacancy_edge import LARGE, Refusal, judge_plain
from vacancy_http import Ending, asks_for_websocket

if TYPE_CHECKING:
    from vacancy_agent.core.facts import Instant
    from vacancy_agent.core.job import Job
    from vacancy_agent.core.verdict import Verdict
    from vacancy_agent.proxy.app import GatedProxy
    from vacancy_agent.proxy.models import Models
    from vacancy_agent.proxy.request import Request
    from vacancy_edge import Judged
    from vacancy_http import Exchange, ResponseHead

COMPLETE = Ending.COMPLETE
JSON = b"application/json"
"""A reply of this type is no stream: its complete framing proves its end, and `answered` need not see it."""
EARLY_BODY = 64 << 10
"""Announced bytes past which the gate is asked before the body is read."""
JOURNAL_FULL = Refuse(Reason.RESOURCE_BUSY, 2, {"cause": "journal_full"}, 7)
NOT_LENT = Refuse(Reason.LENDING_DISABLED, 300, {"cause": "not_configured"}, 1)
"""The upstream has gone from the configuration, and its listener is about to follow."""
WORK = RouteClass.WORK
SUCCESS = range(200, 300)
TOLD_FOR = 10.0
"""Seconds in which a new run of refusals for the same reason is not told: borrowers who take turns would fill
the log."""
SAMPLED_INLINE = frozenset({ResourceType.MEMORY, ResourceType.CPU})


def refused_early(proxy: GatedProxy, x: Exchange, request: Request) -> bool:
    """Ask the gate before a large body is read; True: it refused, and that was the answer."""
    host = proxy.host
    upstream = host.board.settings.upstreams.get(proxy.name)
    now, wall = host.clock.now(), host.clock.wall()
    refuse = NOT_LENT if upstream is None else standing(host.board, upstream, now, wall)
    if refuse is not None:
        _refused(proxy, x, request, refuse)
    return refuse is not None


def body(proxy: GatedProxy, x: Exchange, request: Request, content: bytes | memoryview | None) -> None:
    """The body of a request that is judged is complete: `content`, or None where it is not one object."""
    plan = request.plan
    if content is None:
        held = x.body
        if held is not None and len(held) > LARGE:
            proxy.host.spawn(_judge_aside(proxy, x, request))
            return
        content = b"" if held is None else held.view()
    judged = judge_plain(plan.match, content, plan.content_type, plan.principal.relays, counts=False)
    if isinstance(judged, Refusal):
        proxy.refuse(x, judged)
    elif judged.cls is WORK:
        (admit if judged.prompt is None else _submit)(proxy, x, request, judged)
    else:
        proxy.judged_no_work(x, plan, judged)


async def _judge_aside(proxy: GatedProxy, x: Exchange, request: Request) -> None:
    assert x.body is not None  # noqa: S101 - only called for a collected body
    plan = request.plan
    judged = await proxy.host.helper.judge(
        plan.match, x.body, plan.content_type, None, x.query, relay=plan.principal.relays
    )
    if not x.alive:
        return
    if isinstance(judged, Refusal):
        proxy.refuse(x, judged)
    elif judged.cls is WORK:
        (admit if judged.prompt is None else _submit)(proxy, x, request, judged)
    else:
        proxy.judged_no_work(x, plan, judged)


def _submit(proxy: GatedProxy, x: Exchange, request: Request, judged: Judged) -> None:
    ready = prompts.prepared(proxy, x, request, judged)
    if isinstance(ready, Refusal):
        proxy.refuse(x, ready)
    else:
        admit(proxy, x, request, ready)


def admit(proxy: GatedProxy, x: Exchange, request: Request, judged: Judged) -> None:
    """Gate, ledger, journal, forward: one turn of the loop."""
    host, plan, name, model = proxy.host, request.plan, proxy.name, judged.model
    now, wall = host.clock.now(), host.clock.wall()
    models = proxy.models
    verdict: Verdict | None = host.gate.kept(name, model, now) if models is None else None
    if verdict is None:
        known = name in host.board.settings.upstreams
        ask = Ask(name, model) if models is None else models.ask(model, judged.runner)
        verdict = host.gate.decide(ask, now, wall) if known else NOT_LENT
    if isinstance(verdict, Refuse):
        _not_now(proxy, x, request, judged, verdict)
        return
    job = host.ledger.reserve(name, now, plan.borrower, model, host.processes.get(name), verdict.credited)
    if isinstance(job, Refuse):
        _not_now(proxy, x, request, judged, job)
        return
    try:
        request.slot = proxy.partition.write(job.id, job.borrower, model or "", wall, job.process)
    except JournalFullError:
        no_slot(proxy, x, request, job, now)
        return
    request.job = job
    request.started = wall
    host.requests[job.id] = request
    proxy.counters.admitted += 1
    proxy.refusing = None
    if models is not None:
        request.runner = judged.runner
        models.admitted(job, judged.runner, verdict, wall)
    if judged.prompt is not None:
        prompts.admitted(proxy, x, request, judged.prompt)
    content = x.small if judged.forward is None else judged.forward
    if content:
        x.pass_on(proxy.upstream, plan.prefix, content, plan.untold)
    elif asks_for_websocket(x.header(b"upgrade")):
        x.tunnel(proxy.upstream, target=plan.target, drop=plan.drop, add=plan.add)
    else:
        body = x.body if x.has_body else None
        x.forward(proxy.upstream, target=plan.target, drop=plan.drop, add=plan.add, body=body)


def no_slot(proxy: GatedProxy, x: Exchange, request: Request, job: Job, now: Instant) -> None:
    """The journal has no slot for a job that was reserved."""
    _forget(proxy, job, now)
    _refused(proxy, x, request, JOURNAL_FULL)


def answered(proxy: GatedProxy, x: Exchange, request: Request, response: ResponseHead) -> None:
    """The upstream's head came: watch for the end marker where the reply is an event stream."""
    plan = request.plan
    route = plan.match.route
    if route is None:
        return
    stream = needs_marker(route, response.content_type)
    if stream:
        request.watch = EndWatch(route)
        request.plain = False
        x.tap = request.watch.feed
    if route.issues_ids and response.status in SUCCESS:
        own_ids.listen(proxy.host, x, proxy.settings.target, plan.borrower, stream=stream)


def ended(proxy: GatedProxy, x: Exchange, request: Request, ending: Ending) -> None:
    """The exchange is over: its job is released if that proves its end, held otherwise."""
    host, job = proxy.host, request.job
    if job is None:
        return
    del host.requests[job.id]
    now = host.clock.now()
    if ending is COMPLETE and request.watch is None:
        why = None  # what `held_because` says of a reply that is no stream and came whole
        proxy.counters.outcomes[Outcome.COMPLETED] += 1
    else:
        missing = request.watch is not None and not request.watch.seen
        why = held_because(ending, sent=x.sent_to_upstream, marker_missing=missing)
        proxy.counters.outcomes[outcome(ending, marker_missing=missing)] += 1
    tracked = False
    if why is not None:
        _hold(proxy, request, job, why, now, told=ending is Ending.CANCELLED)
    elif request.prompt is not None and prompts.landed(proxy, x, request, job, now):
        tracked = True
    else:
        proxy.partition.free(request.slot)
        _forget(proxy, job, now)
    if x.sent_to_upstream:
        used = host.used.get(request.plan.borrower)
        if used is None:
            used = host.used[request.plan.borrower] = Used()
        used.requests += 1
        used.seconds += now - job.since
    if proxy.models is not None:
        proxy.models.ended(job, request.runner, now, served=why is None and x.status in SUCCESS)
    if not tracked and host.ledger.closed:  # else no reclaim is pending that could hear of it
        host.reclaiming.job_ended(proxy.name, job.id, now)


def _forget(proxy: GatedProxy, job: Job, now: Instant) -> None:
    """Release with proof, and read again what the job's end has changed."""
    host = proxy.host
    idle = host.ledger.proved(job.id, now)
    if idle:
        host.sampler.soon(idle)


def _hold(proxy: GatedProxy, request: Request, job: Job, why: str, now: Instant, *, told: bool) -> None:
    """Nothing proves that the work has ended: keep its resources.

    `told`: whoever cut it has one line for all that it cut. A line for each of 256 streams took twice as long
    as their ends did, while an owner waits.
    """
    host = proxy.host
    host.ledger.hold(job.id, why, now)
    proxy.partition.mark(request.slot, Phase.HELD)
    assert request.started is not None  # noqa: S101 - set with the job
    host.held_slots[job.id] = HeldSlot(proxy.partition, request.slot, request.started, request.prompt)
    if not told:
        host.tell("held", upstream=proxy.name, job=job.id, why=why)
    host.held()


def _not_now(proxy: GatedProxy, x: Exchange, request: Request, judged: Judged, refuse: Refuse) -> None:
    """A no: final, or after one reading that may turn it."""
    models = proxy.models
    if refuse.needs_sample and not request.waited:
        _after_sample(proxy, x, request, judged, refuse.needs_sample)
    elif refuse.needs_residency and models is not None and not request.looked:
        proxy.host.spawn(_look_first(proxy, x, request, judged, models))
    else:
        _refused(proxy, x, request, refuse)


def _refused(proxy: GatedProxy, x: Exchange, request: Request, refuse: Refuse) -> None:
    refusal = Refusal(refuse.reason, sentence(refuse), refuse.retry_after, refuse.detail)
    host = proxy.host
    now = host.clock.now()
    if proxy.refusing is not refuse.reason and now >= proxy.told_until.get(refuse.reason, now):
        host.tell("refuses", upstream=proxy.name, reason=refuse.reason.value, borrower=request.plan.borrower)
        proxy.told_until[refuse.reason] = now + TOLD_FOR
    proxy.refusing = refuse.reason
    proxy.refuse(x, refusal)


def _after_sample(
    proxy: GatedProxy, x: Exchange, request: Request, judged: Judged, resources: tuple[str, ...]
) -> None:
    """Decide again once these resources were read anew."""
    request.waited = True
    host = proxy.host
    kinds = host.board.settings.resources
    probes = [
        name for name in resources if kinds[name].type not in SAMPLED_INLINE or not host.sampler.now(name)
    ]
    if probes:
        host.spawn(_wait_for(proxy, x, request, judged, tuple(probes)))
    else:
        admit(proxy, x, request, judged)


async def _wait_for(
    proxy: GatedProxy, x: Exchange, request: Request, judged: Judged, resources: tuple[str, ...]
) -> None:
    await proxy.host.sampler.fresh(resources)
    if x.alive:
        admit(proxy, x, request, judged)


async def _look_first(
    proxy: GatedProxy, x: Exchange, request: Request, judged: Judged, models: Models
) -> None:
    """Decide again once it is known what the upstream holds: only the age of that stood against a yes."""
    request.looked = True
    await models.watched.fresh(LOOK_WITHIN)
    if x.alive:
        admit(proxy, x, request, judged)
