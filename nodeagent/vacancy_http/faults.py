"""How an exchange can end, and the errors the engine itself answers with."""

from __future__ import annotations

from enum import StrEnum


class Ending(StrEnum):
    """Why an exchange is over. Exactly one is reported for each."""

    COMPLETE = "complete"  # the upstream's reply came whole, framing included
    CLIENT_GONE = "client_gone"
    CLIENT_STALLED = "client_stalled"
    UPSTREAM_UNREACHABLE = "upstream_unreachable"  # not a byte was sent to it
    UPSTREAM_DIED = "upstream_died"  # after bytes of the request were sent, before the reply was whole
    UPSTREAM_INVALID = "upstream_invalid"
    UPSTREAM_TIMEOUT = "upstream_timeout"
    TUNNEL_ENDED = "tunnel_ended"  # the upstream closed an open tunnel
    TUNNEL_IDLE = "tunnel_idle"  # nothing went either way for too long
    CANCELLED = "cancelled"
    ANSWERED = "answered"  # a reply of our own; nothing was forwarded

    __hash__ = str.__hash__  # Enum's own is written in Python, and every exchange has its ending looked up


class ProtocolFault(StrEnum):
    """An error the engine found; the application words the reply (`Application.fault_reply`)."""

    BAD_REQUEST = "bad_request"
    HEADER_TIMEOUT = "header_timeout"
    BODY_TIMEOUT = "body_timeout"
    HEAD_TOO_LARGE = "head_too_large"
    BODY_TOO_LARGE = "body_too_large"
    BUDGET = "budget"
    TUNNEL_CAP = "tunnel_cap"
    UPSTREAM_UNREACHABLE = "upstream_unreachable"
    UPSTREAM_INVALID = "upstream_invalid"
    UPSTREAM_TIMEOUT = "upstream_timeout"
    UPSTREAM_DIED = "upstream_died"

    @property
    def status(self) -> int:
        """The HTTP status that belongs to the fault."""
        return _STATUS[self]


_STATUS = {
    ProtocolFault.BAD_REQUEST: 400,
    ProtocolFault.HEADER_TIMEOUT: 408,
    ProtocolFault.BODY_TIMEOUT: 408,
    ProtocolFault.HEAD_TOO_LARGE: 431,
    ProtocolFault.BODY_TOO_LARGE: 413,
    ProtocolFault.BUDGET: 503,
    ProtocolFault.TUNNEL_CAP: 503,
    ProtocolFault.UPSTREAM_UNREACHABLE: 503,
    ProtocolFault.UPSTREAM_INVALID: 502,
    ProtocolFault.UPSTREAM_TIMEOUT: 504,
    ProtocolFault.UPSTREAM_DIED: 502,
}

FAULT_OF_ENDING = {
    Ending.UPSTREAM_UNREACHABLE: ProtocolFault.UPSTREAM_UNREACHABLE,
    Ending.UPSTREAM_DIED: ProtocolFault.UPSTREAM_DIED,
    Ending.UPSTREAM_INVALID: ProtocolFault.UPSTREAM_INVALID,
    Ending.UPSTREAM_TIMEOUT: ProtocolFault.UPSTREAM_TIMEOUT,
}


class VacancyHttpError(Exception):
    """Root of what this package raises."""


class MalformedError(VacancyHttpError):
    """Bytes that do not have exactly one reading."""

    def __init__(self, detail: str, fault: ProtocolFault = ProtocolFault.BAD_REQUEST) -> None:
        super().__init__(detail)
        self.fault = fault
        self.detail = detail
