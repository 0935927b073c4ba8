"""The wording of each refusal that does not come from the gate: what happened, and what the sender can do.

Whatever a client sent is shown shortened and escaped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vacancy_api.reasons import Reason
from vacancy_dialects import QueryRule, RouteClass
from vacancy_edge.refusal import Refusal
from vacancy_http.faults import ProtocolFault

if TYPE_CHECKING:
    from vacancy_dialects import RouteTable

_SHOWN = 120
_MIB = 1 << 20
_V1: Final = b"/v1"

SOON_AFTER = 5
"""Seconds: the hint where a local server needs a moment."""


def shown(raw: bytes | str) -> str:
    """`raw` as it may stand in a message: ASCII, escaped, at most 120 characters."""
    text = raw if isinstance(raw, str) else raw[: _SHOWN + 1].decode("latin-1")
    text = text.encode("unicode_escape").decode("ascii")
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def bad_request(message: str) -> Refusal:
    """400: the request is wrong in itself."""
    return Refusal(Reason.BAD_REQUEST, message)


def ambiguous_body(message: str) -> Refusal:
    """400: servers would read this body differently, so that what was judged might not be what runs."""
    return Refusal(Reason.AMBIGUOUS_BODY, message)


def background_refused() -> Refusal:
    """400: the work would outlive its reply."""
    return Refusal(
        Reason.BACKGROUND_REFUSED,
        'Background responses are not lent, since their work outlives the reply. Leave out "background" or '
        "set it to false.",
    )


def outlives_reply() -> Refusal:
    """400: the same of a route on which all work does."""
    return Refusal(
        Reason.BACKGROUND_REFUSED,
        "Jobs that go on after their reply are not lent. Use the routes that answer with the result.",
    )


def unauthorized() -> Refusal:
    """401."""
    return Refusal(
        Reason.UNAUTHORIZED,
        "A token with the needed scope is required: send it as `Authorization: Bearer TOKEN` or as "
        "`x-api-key: TOKEN`, and if both are sent, the same token in both.",
    )


def management_denied(table: RouteTable, method: str, path: bytes) -> Refusal:
    """403: management, or a read that is not listed; names the reads a borrower has."""
    bare = any(row.query is QueryRule.MANAGEMENT for row in table.rows)
    return Refusal(
        Reason.MANAGEMENT_DENIED,
        f"{shown(method)} {shown(path)} is not open to borrowers here. These reads are"
        f"{', without a query' if bare else ''}: {', '.join(table.reads)}. The owner can open management "
        "per upstream with `management: allow`.",
    )


def unload_denied(path: bytes) -> Refusal:
    """403: management that is written as work."""
    return Refusal(
        Reason.MANAGEMENT_DENIED,
        f"{shown(path)} without anything to generate and with `keep_alive` 0 unloads the model, which is not "
        "open to borrowers here. The owner can open management per upstream with `management: allow`.",
    )


def cloud_model(model: str) -> Refusal:
    """403: the name leaves the machine under the owner's identity."""
    return Refusal(
        Reason.CLOUD_MODEL,
        f"{shown(model)} is served by ollama.com in the owner's name and is not lent. Use a local model.",
    )


def request_timeout(detail: str) -> Refusal:
    """408: the request did not arrive in time."""
    return Refusal(Reason.REQUEST_TIMEOUT, f"The request did not arrive in time: {detail}.", 1)


def body_too_large(limit: int) -> Refusal:
    """413; `limit` in bytes."""
    return Refusal(
        Reason.BODY_TOO_LARGE,
        f"The body is larger than the {limit / _MIB:g} MiB this host accepts (maxRequestBodyMiB).",
    )


def content_encoding(coding: bytes) -> Refusal:
    """415: what is compressed cannot be judged as it is forwarded."""
    return Refusal(
        Reason.CONTENT_ENCODING,
        f"Content-Encoding {shown(coding)} is not accepted. Send the body uncompressed.",
    )


def unrecognised_route(table: RouteTable, method: str, path: bytes) -> Refusal:
    """501: no row of the table, and not a read. Of a wrong base URL it says which route was meant."""
    meant = (_V1 + path, path.removeprefix(_V1), path.rstrip(b"/"))
    near = next((one for one in meant if table.classify(method, one, None).cls is RouteClass.WORK), None)
    remedy = (
        "Use a listed one (docs/routes.md), or report it to the project to have it listed."
        if near is None
        else f"Did you mean {shown(near)}? A base URL ends in /v1 for OpenAI clients, for others not."
    )
    return Refusal(
        Reason.UNRECOGNISED_ROUTE,
        f"{shown(method)} {shown(path)} is not a route this version knows for {table.dialect}, and is not "
        f"forwarded. {remedy}",
    )


def no_handshake(why: str) -> Refusal:
    """400: it asks for a WebSocket in another way than RFC 6455 has it."""
    return bad_request(f"This asks for a WebSocket and cannot become one: {why}.")


def websocket_query() -> Refusal:
    """400: a query string at a WebSocket that is work."""
    return bad_request(
        "This WebSocket takes no query string, since it could choose the model. Leave it out; the server's "
        "own model is the one that is lent here."
    )


def foreign_page() -> Refusal:
    """401: a web page of another site opened a WebSocket, and nothing else said who asks."""
    return Refusal(
        Reason.UNAUTHORIZED,
        "A web page of another site may not open a WebSocket here without a token. Programs send no Origin, "
        "or one that names this address.",
    )


def upstream_invalid(detail: str) -> Refusal:
    """502."""
    return Refusal(
        Reason.UPSTREAM_INVALID, f"The local server's answer could not be used: {detail}.", SOON_AFTER
    )


def upstream_timeout(detail: str) -> Refusal:
    """504."""
    return Refusal(Reason.UPSTREAM_TIMEOUT, f"The local server did not answer in time: {detail}.", SOON_AFTER)


def upstream_unavailable(detail: str) -> Refusal:
    """503: nobody listens there, or the connection failed before the request was sent."""
    return Refusal(Reason.UPSTREAM_UNAVAILABLE, f"The local server cannot be reached: {detail}.", SOON_AFTER)


def buffer_budget() -> Refusal:
    """503: too many bodies at once."""
    return Refusal(
        Reason.BUFFER_BUDGET,
        "This host holds as many request bodies as it may (maxBufferedBodyMiB). Try again shortly.",
        2,
    )


def helper_lost(detail: str) -> Refusal:
    """503: the process that reads large bodies died or was stopped."""
    return Refusal(
        Reason.BUFFER_BUDGET,
        f"This large body could not be read: {detail}. Try again, or send a body of at most 4 MiB.",
        2,
    )


def tunnel_cap() -> Refusal:
    """503: as many WebSockets as allowed."""
    return Refusal(
        Reason.TUNNEL_CAP,
        "As many WebSocket connections are open here as may be (maxTunnels). Close one, or try later.",
        SOON_AFTER,
    )


def of_fault(fault: ProtocolFault, detail: str, *, max_body: int) -> Refusal:
    """The refusal for an error that the HTTP engine found; `max_body` is its limit in bytes."""
    if fault is ProtocolFault.BODY_TOO_LARGE:
        return body_too_large(max_body)
    if fault is ProtocolFault.BUDGET:
        return buffer_budget()
    if fault is ProtocolFault.TUNNEL_CAP:
        return tunnel_cap()
    worded = _WORDED.get(fault)
    if worded is not None:
        return worded(detail)
    return Refusal(Reason.BAD_REQUEST, f"The request is not valid HTTP: {detail}.", status=fault.status)


_WORDED: Final = {
    ProtocolFault.HEADER_TIMEOUT: request_timeout,
    ProtocolFault.BODY_TIMEOUT: request_timeout,
    ProtocolFault.UPSTREAM_UNREACHABLE: upstream_unavailable,
    ProtocolFault.UPSTREAM_TIMEOUT: upstream_timeout,
    ProtocolFault.UPSTREAM_INVALID: upstream_invalid,
    ProtocolFault.UPSTREAM_DIED: upstream_invalid,
}
