"""The short way of a work request: the path of `work.py` for what nearly every request is.

Invariant: what goes this way is what `work.admit` and `work.ended` would have done, in the same order and
within the same turn of the loop; whatever differs in anything is left to them, and then nothing was done
here. It is for a body that came with its head, on a row whose bodies are plain JSON, of an upstream that
tells nothing of what it holds, under an admission that the gate remembers. A stream goes it too, up to its
end: only a whole reply that is no stream proves by itself that the work ended.

Why it exists: a request costs what the functions that run for it cost to enter, far more than what they do;
the code of the full way does not even fit into the processor's first cache. So the parts are bound once, when
the proxy is made, and one function does what six did. Rejected: the same for every dialect, which would put
each one's questions into everybody's path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.core.verdict import Refuse
from vacancy_agent.proxy import work
from vacancy_agent.proxy.counters import Outcome
from vacancy_agent.proxy.host import Used
from vacancy_agent.proxy.request import Request
from vacancy_agent.store.journal import JournalFullError
from vacancy_dialects import BodyRule, BodyShape, RouteClass
from vacancy_edge import plain_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_agent.core.job import Job
    from vacancy_agent.proxy.app import GatedProxy
    from vacancy_agent.proxy.plan import Plan
    from vacancy_dialects import Match
    from vacancy_http import Exchange

_COMPLETED = Outcome.COMPLETED


def barred(proxy: GatedProxy, match: Match, *, relay: bool) -> frozenset[str] | None:
    """The keys whose body does not go the short way; None: no body of this row does."""
    route = match.route
    if (
        match.cls is not RouteClass.WORK
        or route is None
        or route.shape is not BodyShape.JSON
        or route.body is not BodyRule.PLAIN
        or route.tracked
        or route.issues_ids
        or proxy.models is not None
    ):
        return None
    return frozenset({"background"}) if relay else route.relay_fields | {"background"}


def admission(proxy: GatedProxy) -> Callable[[Exchange, Plan, frozenset[str], bytes], bool]:
    """A function that judges a body, decides, reserves, writes the slot and passes the request on.

    It answers False, and has done nothing, where `work.body` has to say.
    """
    host, name, upstream, counters = proxy.host, proxy.name, proxy.upstream, proxy.counters
    now_is, wall_is = host.clock.now, host.clock.wall
    kept, reserve = host.gate.kept, host.ledger.reserve
    write, requests, processes = proxy.partition.write, host.requests, host.processes

    def admit(x: Exchange, plan: Plan, barred: frozenset[str], body: bytes) -> bool:
        model = plain_model(body, barred)
        if model is None:
            return False
        now = now_is()
        verdict = kept(name, model, now)
        if verdict is None:
            return False
        borrower = plan.borrower
        job = reserve(name, now, borrower, model, processes.get(name), verdict.credited)
        if isinstance(job, Refuse):
            return False
        wall = wall_is()
        try:
            slot = write(job.id, borrower, model, wall, job.process)
        except JournalFullError:
            x.context = Request(x, plan)
            work.no_slot(proxy, x, x.context, job, now)
            return True
        x.context = requests[job.id] = Request(x, plan, job, slot, wall, True)
        counters.admitted += 1
        proxy.refusing = None
        x.pass_on(upstream, plan.prefix, body, plan.untold)
        return True

    return admit


def release(proxy: GatedProxy) -> Callable[[Request, Job], None]:
    """A function that ends a job of the short way whose reply came whole: that is proof."""
    host, name, outcomes = proxy.host, proxy.name, proxy.counters.outcomes
    now_is, ledger, requests, free = host.clock.now, host.ledger, host.requests, proxy.partition.free
    proved = ledger.proved

    def end(request: Request, job: Job) -> None:
        number = job.id
        del requests[number]
        now = now_is()
        outcomes[_COMPLETED] += 1
        free(request.slot)
        idle = proved(number, now)
        if idle:
            host.sampler.soon(idle)
        borrower = request.plan.borrower
        used = host.used.get(borrower)
        if used is None:
            used = host.used[borrower] = Used()
        used.requests += 1
        used.seconds += now - job.since
        if ledger.closed:  # a reclaim is pending that may wait for this end
            host.reclaiming.job_ended(name, number, now)

    return end
