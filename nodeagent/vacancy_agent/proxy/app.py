"""One upstream's gated proxy: what `vacancy_http` asks of whoever sits on a listener.

A request goes through these steps, and a refusal at one of them is its answer:

1. who asks (`unauthorized`), and may they borrow;
2. which class the route has: pass-through and allowed management are forwarded as they are, management
   (`management_denied`) and unrecognised routes (`unrecognised_route`) are refused, work goes on;
3. the body is collected, bounded, and judged (`work.py` from here);
4. the gate decides, the ledger reserves, the journal is written, the request is forwarded.

All of it happens in callbacks of one loop. What may take long (a large body, a capacity sample) is awaited in
a task of its own, after which the decision is made anew.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vacancy_agent.proxy import short, tunnel, work
from vacancy_agent.proxy.plan import Plan
from vacancy_agent.proxy.request import Request
from vacancy_dialects import ReplyRule, ReplyUnreadableError, RouteClass, rewrite_reply
from vacancy_edge import Principal, Refusal, Scope, is_judged, judge_head, refusal_reply, refusals, retyped
from vacancy_edge.this_machine import from_this_machine
from vacancy_http import ProtocolFault, Reply, asks_for_websocket, head_prefix

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_agent.core.settings import UpstreamSettings
    from vacancy_agent.proxy.host import Host
    from vacancy_agent.store.journal import Partition
    from vacancy_api.reasons import Reason
    from vacancy_dialects import Match, Route, RouteTable
    from vacancy_edge import Judged
    from vacancy_http import Body, BodyBudget, Ending, Exchange, ResponseHead, Upstream

LOOPBACK = Principal("loopback", frozenset({Scope.BORROW}))
"""Whoever is let in by `trustLoopback` without a token."""
ANYONE = Principal("anonymous", frozenset({Scope.BORROW}))
"""Whoever is let in by `allowUnauthenticatedRemote`."""
UNKNOWN_ROUTE = frozenset({b"x-vacancy-borrower"})
"""What goes from a request that the owner's `management: allow` lets through without a row."""
SUCCESS = range(200, 300)
CREDENTIAL_HEADERS = frozenset({b"authorization", b"x-api-key"})


class GatedProxy:
    """The application on one upstream's listener.

    Args:
        host: what all listeners share.
        settings: the upstream.
        table: its dialect's routes.
        upstream: its server, as the engine reaches it.
        partition: its slots in the hold journal.
        budget: bytes of bodies that this listener may hold.
        max_body: the listener's limit for one body, bytes; for the words of a refusal.
        credential: what the upstream wants to see in Authorization; None: nothing.
    """

    def __init__(
        self,
        host: Host,
        settings: UpstreamSettings,
        table: RouteTable,
        upstream: Upstream,
        partition: Partition,
        budget: BodyBudget,
        *,
        max_body: int,
        credential: str | None = None,
    ) -> None:
        self.host = host
        self.settings = settings
        self.name = settings.name
        self.table = table
        self.upstream = upstream
        self.partition = partition
        self.budget: BodyBudget = budget
        self.counters = host.counters_of(settings.name)
        self.models = host.models.get(settings.name)
        """None: the upstream tells nothing of what it holds, and no request of it asks again."""
        self._add: tuple[tuple[bytes, bytes], ...] = ()
        if credential is not None:
            self._add = ((b"authorization", b"Bearer " + credential.encode()),)
        self._admit = short.admission(self)
        self._release = short.release(self)
        self.refusing: Reason | None = None
        """Reason of the last refusal: the first of a run is told, the rest is counted."""
        self.told_until: dict[Reason, float] = {}
        """Until when no other run for this reason is told."""
        self._max_body = max_body
        self._always_dropped = CREDENTIAL_HEADERS
        self._forwards_authorization = settings.forward_authorization and credential is None
        if self._forwards_authorization:
            self._always_dropped = frozenset({b"x-api-key"})
        self._drops: dict[frozenset[bytes], frozenset[bytes]] = {}
        self._may_pass = {RouteClass.PASS_THROUGH}
        if settings.management_allowed:
            self._may_pass |= {RouteClass.MANAGEMENT, RouteClass.UNLISTED_READ}

    # What the engine calls.

    def head_received(self, x: Exchange) -> None:
        """Steps 1 and 2."""
        host = self.host
        plan: Plan | None = x.head.note
        if plan is None or plan.generation != host.generation:
            plan = self._plan(x)
            if plan is None:
                return
        host.auth.allowed["borrow"] += 1
        body = x.small if plan.is_work else None
        if body is not None and plan.barred is not None and self._admit(x, plan, plan.barred, body):
            return  # the short way
        x.context = request = Request(x, plan)
        if body is not None:
            self._judge(x, request)
            return
        if plan.is_work:
            large = x.content_length > work.EARLY_BODY or x.head.chunked
            if large and work.refused_early(self, x, request):
                return
        x.collect_body()

    def body_received(self, x: Exchange) -> None:
        """Step 3 for what is judged; the rest is forwarded as it came."""
        request: Request = x.context
        plan = request.plan
        if plan.is_judged:
            self._judge(x, request)
        else:
            self._pass(x, plan, x.body if x.has_body else None)

    def response_started(self, x: Exchange, head: ResponseHead) -> None:
        """The upstream answers."""
        request: Request = x.context
        # A reply that is JSON mostly needs no look: it is no stream.
        if request.job is not None and head.content_type != request.plan.untold:
            work.answered(self, x, request, head)

    def exchange_ended(self, x: Exchange, ending: Ending) -> None:
        """Release or hold."""
        request: Request | None = x.context
        if request is not None:
            job = request.job
            if job is not None:
                if request.plain and ending is work.COMPLETE:
                    self._release(request, job)
                else:
                    work.ended(self, x, request, ending)
            elif isinstance(request, tunnel.Listening):
                tunnel.ended(self, request)
        # Exchange and request name each other. Left like that, each pair waits for the garbage collector, and
        # the memory of the next one is never warm: that cost more than all of this package's own work.
        x.context = None

    def fault_reply(self, fault: ProtocolFault, detail: str) -> Reply:
        """Word an error that the engine found."""
        refusal = refusals.of_fault(fault, detail, max_body=self._max_body)
        self.counters.refused[refusal.reason] += 1
        return refusal_reply(refusal)

    # What the steps share.

    def refuse(self, x: Exchange, refusal: Refusal) -> None:
        """Answer with a refusal, and count it."""
        self.counters.refused[refusal.reason] += 1
        x.respond(refusal_reply(refusal))

    def _judge(self, x: Exchange, request: Request) -> None:
        """Have the body judged, a large one when its turn comes."""
        if x.small is not None and len(x.small) <= work.EARLY_BODY:
            work.body(self, x, request, x.small)
        else:
            self.host.in_turn(partial(self._judge_large, x, request))

    def _judge_large(self, x: Exchange, request: Request) -> None:
        if x.alive:
            work.body(self, x, request, x.small)

    def judged_no_work(self, x: Exchange, plan: Plan, judged: Judged) -> None:
        """A body was read, and asks for no work: a read, or management that is written as work."""
        if judged.cls in self._may_pass:
            self._pass(x, plan, judged.forward or (x.body if x.has_body else None))
        else:
            self.refuse(x, refusals.unload_denied(x.path))

    def _pass(self, x: Exchange, plan: Plan, body: Body | bytes | None) -> None:
        self.counters.passed += 1
        x.forward(
            self.upstream,
            target=plan.target,
            drop=plan.drop,
            add=plan.add,
            body=body,
            whole=self._rewriter(x, plan.match.route),
        )

    def _plan(self, x: Exchange) -> Plan | None:
        """What the head decides; None: it was refused, or is a WebSocket's and was dealt with."""
        principal = self._who(x)
        if principal is None or not principal.may_borrow:
            self.host.auth.denied["borrow"] += 1
            self.refuse(x, refusals.unauthorized())
            return None
        websocket = asks_for_websocket(x.header(b"upgrade"))
        found = tunnel.route(self.table, self._may_pass, x) if websocket else self._route(x, principal)
        if isinstance(found, Refusal):
            self.host.auth.allowed["borrow"] += 1
            self.refuse(x, found)
            return None
        plan = self._planned(x, principal, found)
        if websocket:
            tunnel.opens(self, x, plan, by_token=principal not in (LOOPBACK, ANYONE))
            return None
        if principal is not LOOPBACK:  # that one depends on where the connection comes from
            x.head.note = plan
        return plan

    def _route(self, x: Exchange, principal: Principal) -> Match | Refusal:
        match = self.table.classify(x.method, x.path, x.query)
        own = self.host.own_ids.opens(self.settings.target, match, self._borrower(x, principal))
        if own or match.cls is RouteClass.WORK or match.cls in self._may_pass:
            encoding = x.header(b"content-encoding")
            return judge_head(match, x.header(b"content-type"), encoding, x.query) or match
        if match.cls is RouteClass.UNRECOGNISED:
            return refusals.unrecognised_route(self.table, x.method, match.path)
        return refusals.management_denied(self.table, x.method, match.path)

    def _planned(self, x: Exchange, principal: Principal, match: Match) -> Plan:
        content_type = x.header(b"content-type")
        route = match.route
        drop = self._always_dropped
        drop |= UNKNOWN_ROUTE if route is None else route.drop_headers(relay=principal.relays)
        add = self._add
        if retyped(match, content_type):
            drop, add = drop | {b"content-type"}, (*add, (b"content-type", work.JSON))
        target, drop = match.target(x.query), self._same(drop)
        return Plan(
            self.host.generation,
            principal,
            self._borrower(x, principal),
            match,
            match.cls is RouteClass.WORK,
            is_judged(match),
            target,
            drop,
            add,
            content_type,
            None if route is not None and (route.tracked or route.issues_ids) else work.JSON,
            short.barred(self, match, relay=principal.relays),
            head_prefix(x.head, target, self.upstream.host_line, drop=drop, add=add),
        )

    def _same(self, drop: frozenset[bytes]) -> frozenset[bytes]:
        """One object for equal sets: the engine keeps what it made of a head by them."""
        return self._drops.setdefault(drop, drop)

    def _who(self, x: Exchange) -> Principal | None:
        authorization, key = x.header(b"authorization"), x.header(b"x-api-key")
        if self._forwards_authorization and self.host.tokens.check(authorization, None) is None:
            authorization = None  # it is the server's; a token for us comes as x-api-key then
        principal = self.host.tokens.check(authorization, key)
        if principal is not None:
            return principal
        access = self.host.access
        if access.allow_unauthenticated_remote:
            return ANYONE
        if access.trust_loopback and authorization is None and key is None and _is_local(x):
            return LOOPBACK
        return None

    def _rewriter(self, x: Exchange, route: Route | None) -> Callable[[ResponseHead, bytes], Reply] | None:
        """What makes the answer out of a reply that must not pass as it is; HEAD shows nothing of it."""
        if route is None or route.reply is ReplyRule.AS_IS or x.method == "HEAD":
            return None
        rule = route.reply

        def rewritten(head: ResponseHead, body: bytes) -> Reply:
            if head.status not in SUCCESS:
                return Reply(head.status, tuple(head.headers), body)
            try:
                return Reply(head.status, tuple(head.headers), rewrite_reply(rule, body))
            except ReplyUnreadableError as error:
                return self.fault_reply(ProtocolFault.UPSTREAM_INVALID, str(error))

        return rewritten

    def _borrower(self, x: Exchange, principal: Principal) -> str:
        if principal.relays:
            said = x.header(b"x-vacancy-borrower")
            if said is not None:
                return refusals.shown(said)
        return principal.name


def _is_local(x: Exchange) -> bool:
    peer, host, origin = x.peer, x.header(b"host"), x.header(b"origin")
    return from_this_machine(
        None if not peer else str(peer[0]),
        None if host is None else host.decode("latin-1"),
        None if origin is None else origin.decode("latin-1"),
        tls=x.is_tls,
    )
