"""The three automata of the engine, as tables (h11's manner).

Every change of state goes through a table, so a path nobody thought of ends as `IllegalTransitionError` on
one connection (its transport is then closed by the loop) instead of as a reply to the wrong client. Rejected:
flags (`is_paused`, `has_reply`, ...), of which 2**n combinations would have to be right.
"""

from __future__ import annotations

from enum import IntEnum

from vacancy_http.faults import VacancyHttpError


class IllegalTransitionError(VacancyHttpError):
    """A change of state that its table does not have: a bug in the engine or a misuse by the application."""


class Connection(IntEnum):
    """A client's connection."""

    IDLE = 0  # no byte of the next head yet
    HEAD = 1  # part of a head
    BODY = 2  # collecting a body
    REPLY = 3  # a reply is owed
    DRAIN = 4  # replied; the rest of a refused body is dropped, then the connection goes on
    LINGER = (
        5  # replied and no more requests: what still comes is dropped, so that the reply is not reset away
    )
    TUNNEL = 6  # bytes go both ways, unread
    CLOSING = 7  # what is written still leaves
    CLOSED = 8


class Phase(IntEnum):
    """An exchange: one request and its one reply."""

    DECIDING = 0  # the application has the head
    COLLECTING = 1  # the body is arriving
    JUDGING = 2  # the application has the body
    FORWARDED = 3  # with the upstream, no head of a response yet
    STREAMING = 4  # the client has the head of the upstream's response
    ENDED = 5


class Link(IntEnum):
    """A connection to an upstream."""

    CONNECTING = 0
    IDLE = 1  # in the pool
    HEAD = 2  # request given, head of the response awaited
    BODY = 3  # body of the response
    TUNNEL = 4  # bytes go both ways, unread
    FLUSHING = 5  # a tunnel is over, and what was written still leaves
    CLOSED = 6


CONNECTION_NEXT: tuple[frozenset[Connection], ...] = (
    frozenset(
        {Connection.HEAD, Connection.REPLY, Connection.LINGER, Connection.CLOSING, Connection.CLOSED},
    ),  # IDLE
    frozenset({Connection.REPLY, Connection.LINGER, Connection.CLOSING, Connection.CLOSED}),  # HEAD
    frozenset(
        {
            Connection.REPLY,
            Connection.DRAIN,
            Connection.LINGER,
            Connection.CLOSING,
            Connection.CLOSED,
        },
    ),  # BODY
    frozenset(
        {
            Connection.IDLE,
            Connection.BODY,
            Connection.DRAIN,
            Connection.LINGER,
            Connection.TUNNEL,
            Connection.CLOSING,
            Connection.CLOSED,
        },
    ),  # REPLY
    frozenset({Connection.IDLE, Connection.LINGER, Connection.CLOSING, Connection.CLOSED}),  # DRAIN
    frozenset({Connection.CLOSING, Connection.CLOSED}),  # LINGER
    frozenset({Connection.CLOSING, Connection.CLOSED}),  # TUNNEL
    frozenset({Connection.CLOSED}),  # CLOSING
    frozenset(),  # CLOSED
)

PHASE_NEXT: tuple[frozenset[Phase], ...] = (
    frozenset({Phase.COLLECTING, Phase.JUDGING, Phase.FORWARDED, Phase.ENDED}),  # DECIDING
    frozenset({Phase.JUDGING, Phase.ENDED}),  # COLLECTING
    frozenset({Phase.FORWARDED, Phase.ENDED}),  # JUDGING
    frozenset({Phase.STREAMING, Phase.ENDED}),  # FORWARDED
    frozenset({Phase.ENDED}),  # STREAMING
    frozenset(),  # ENDED
)

LINK_NEXT: tuple[frozenset[Link], ...] = (
    frozenset({Link.HEAD, Link.CLOSED}),  # CONNECTING
    frozenset({Link.HEAD, Link.CLOSED}),  # IDLE
    frozenset({Link.BODY, Link.IDLE, Link.TUNNEL, Link.CLOSED}),  # HEAD
    frozenset({Link.IDLE, Link.CLOSED}),  # BODY
    frozenset({Link.FLUSHING, Link.CLOSED}),  # TUNNEL
    frozenset({Link.CLOSED}),  # FLUSHING
    frozenset(),  # CLOSED
)
