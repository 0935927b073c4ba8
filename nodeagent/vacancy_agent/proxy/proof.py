"""What the end of an exchange proves about the work behind it. Pure.

A terminal reply is proof: its framing is complete and, for an event stream, its end marker was seen (servers
send headers before the first token, so a clean end alone is not success). A request of which no byte reached
the upstream never became work. Everything else proves nothing, and the job is held: also the orderly end of a
WebSocket, since nobody reads in it what the server still does.
"""

from __future__ import annotations

from vacancy_agent.proxy.counters import Outcome
from vacancy_http import Ending

OUTCOME: dict[Ending, Outcome] = {
    Ending.COMPLETE: Outcome.COMPLETED,
    Ending.CLIENT_GONE: Outcome.CLIENT_CLOSED,
    Ending.CLIENT_STALLED: Outcome.CLIENT_CLOSED,
    Ending.TUNNEL_ENDED: Outcome.COMPLETED,
    Ending.TUNNEL_IDLE: Outcome.CANCELLED,
    Ending.CANCELLED: Outcome.CANCELLED,
    Ending.UPSTREAM_UNREACHABLE: Outcome.FAILED,
    Ending.UPSTREAM_DIED: Outcome.FAILED,
    Ending.UPSTREAM_INVALID: Outcome.FAILED,
    Ending.UPSTREAM_TIMEOUT: Outcome.FAILED,
    Ending.ANSWERED: Outcome.FAILED,
}

WHY_HELD: dict[Ending, str] = {
    Ending.COMPLETE: "the stream ended without its end marker",
    Ending.CLIENT_GONE: "the borrower left before the reply was complete",
    Ending.CLIENT_STALLED: "the borrower stopped reading the reply",
    Ending.TUNNEL_ENDED: "a WebSocket that is closed does not show that its work has ended",
    Ending.TUNNEL_IDLE: "nothing came through the WebSocket for too long",
    Ending.CANCELLED: "this host took it back before its reply was complete",
    Ending.UPSTREAM_DIED: "the upstream closed the connection before its reply was complete",
    Ending.UPSTREAM_INVALID: "the upstream's reply could not be read",
    Ending.UPSTREAM_TIMEOUT: "the upstream did not answer in time",
}


def held_because(ending: Ending, *, sent: bool, marker_missing: bool) -> str | None:
    """Why the job must be held, or None when its end is proved.

    Args:
        ending: how the exchange ended.
        sent: bytes of the request may have reached the upstream.
        marker_missing: it was an event stream whose end marker was not seen.
    """
    if not sent or (ending is Ending.COMPLETE and not marker_missing):
        return None
    return WHY_HELD.get(ending, "the exchange ended without a reply")


def outcome(ending: Ending, *, marker_missing: bool) -> Outcome:
    """How the request is counted. A stream that broke off inside is no success, however clean its framing."""
    if ending is Ending.COMPLETE and marker_missing:
        return Outcome.FAILED
    return OUTCOME[ending]
