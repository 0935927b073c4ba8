"""WebSockets: which handshakes become tunnels, and which of them are work.

A handshake meets only rows of the method `WEBSOCKET`, and the row decides as for any request: pass-through
is open whatever the gate says and is never taken back; work is decided by the gate before the upstream hears
of it, is reserved, written down and taken back like any job; everything else is refused.

Invariant: the gate decides about a socket once, for what the server has by itself. Nothing in the handshake
may choose another model, so a row of work refuses every query; and since nobody reads what goes through, the
end of a socket proves nothing about the work behind it: the job is held until the server shows that it is
idle. Rejected: to read the frames. They may be compressed, and what each server takes from them differs.

A browser opens WebSockets to any site without asking it first (there is no CORS), and a page cannot send a
token. So whoever is let in without one must come from a program, or from a page of the proxy's own address:
`trustLoopback` asks that of every request, and here it is asked of everybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.proxy import work
from vacancy_agent.proxy.request import Request
from vacancy_dialects import WEBSOCKET, QueryRule, RouteClass
from vacancy_edge import Judged, Refusal, refusal_reply, refusals
from vacancy_edge.comfy_clients import client_in, foreign_client
from vacancy_edge.this_machine import same_origin
from vacancy_http import Reply, handshake_fault

if TYPE_CHECKING:
    from collections.abc import Container

    from vacancy_agent.proxy.app import GatedProxy
    from vacancy_agent.proxy.plan import Plan
    from vacancy_dialects import Match, RouteTable
    from vacancy_http import Exchange


VERSION = (b"sec-websocket-version", b"13")
"""RFC 6455, 4.2.2: whoever sent no valid handshake is told which version there is."""


class Listening(Request):
    """A tunnel that brings the messages for one client id."""

    __slots__ = ("client_id",)

    def __init__(self, exchange: Exchange, plan: Plan, client_id: str) -> None:
        super().__init__(exchange, plan)
        self.client_id = client_id


def route(table: RouteTable, may_pass: Container[RouteClass], x: Exchange) -> Match | Refusal:
    """The row that a handshake meets, if it is open."""
    match = table.classify(WEBSOCKET, x.path, x.query)
    if match.cls is RouteClass.WORK:
        chosen = x.query and match.route is not None and match.route.query is QueryRule.REFUSE
        return refusals.websocket_query() if chosen else match
    if match.cls in may_pass:
        return match
    if match.cls is RouteClass.UNRECOGNISED:
        return refusals.unrecognised_route(table, "WebSocket", match.path)
    return refusals.management_denied(table, "WebSocket", match.path)


def opens(proxy: GatedProxy, x: Exchange, plan: Plan, *, by_token: bool) -> None:
    """Open the tunnel of a handshake whose row is open, or refuse it; `by_token`: its sender showed one."""
    proxy.host.auth.allowed["borrow"] += 1
    why = handshake_fault(x.head, has_body=x.has_body)
    if why is not None:
        proxy.counters.refused[refusals.no_handshake(why).reason] += 1
        reply = refusal_reply(refusals.no_handshake(why))
        x.respond(Reply(reply.status, (*reply.headers, VERSION), reply.body))
    elif not by_token and not _from_here(x):
        proxy.refuse(x, refusals.foreign_page())
    elif x.tunnels_full:
        proxy.refuse(x, refusals.tunnel_cap())
    elif plan.is_work:
        request = x.context = Request(x, plan)
        work.admit(proxy, x, request, Judged())
    else:
        _pass_through(proxy, x, plan)


def ended(proxy: GatedProxy, request: Listening) -> None:
    """A tunnel for a client id is over."""
    host = proxy.host
    host.client_ids.closed(proxy.settings.target, request.client_id, host.clock.now())


def _pass_through(proxy: GatedProxy, x: Exchange, plan: Plan) -> None:
    name = plan.match.route.client_query if plan.match.route is not None else None
    client_id = None if name is None else client_in(x.query, name)
    if isinstance(client_id, Refusal):
        proxy.refuse(x, client_id)
        return
    if client_id is None:
        x.context = Request(x, plan)
    else:
        ids, server = proxy.host.client_ids, proxy.settings.target
        if not ids.claim(server, client_id, plan.borrower, proxy.host.clock.now()):
            proxy.refuse(x, foreign_client(client_id))
            return
        ids.opened(server, client_id)
        x.context = Listening(x, plan, client_id)
    proxy.counters.passed += 1
    x.tunnel(proxy.upstream, target=plan.target, drop=plan.drop, add=plan.add)


def _from_here(x: Exchange) -> bool:
    """Whether no page, or a page of the address that was asked, opens this socket."""
    host, origin = x.header(b"host"), x.header(b"origin")
    return same_origin(
        None if host is None else host.decode("latin-1"),
        None if origin is None else origin.decode("latin-1"),
        tls=x.is_tls,
    )
