"""Reason codes as plain enums.

This module imports nothing but `enum`: it is the one part of the contract that the pure cores may see.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a request was refused: `error.code` and `X-Vacancy-Reason` of a refusal."""

    # 400
    BAD_REQUEST = "bad_request"
    AMBIGUOUS_BODY = "ambiguous_body"
    BACKGROUND_REFUSED = "background_refused"
    # 401, 403
    UNAUTHORIZED = "unauthorized"
    MANAGEMENT_DENIED = "management_denied"
    CLOUD_MODEL = "cloud_model"
    # 408, 413, 415
    REQUEST_TIMEOUT = "request_timeout"
    BODY_TOO_LARGE = "body_too_large"
    CONTENT_ENCODING = "content_encoding"
    # 501, 502, 504
    UNRECOGNISED_ROUTE = "unrecognised_route"
    UPSTREAM_INVALID = "upstream_invalid"
    UPSTREAM_TIMEOUT = "upstream_timeout"
    # 503: the gate's
    LENDING_DISABLED = "lending_disabled"
    OWNER_ACTIVE = "owner_active"
    RESOURCE_DISABLED = "resource_disabled"
    RESOURCE_UNMEASURED = "resource_unmeasured"
    INSUFFICIENT_CAPACITY = "insufficient_capacity"
    RESOURCE_PRESSURED = "resource_pressured"
    UPSTREAM_NOT_ON_GPU = "upstream_not_on_gpu"
    # 503: the ledger's
    RESOURCE_BUSY = "resource_busy"
    # 503: the proxy's
    BUFFER_BUDGET = "buffer_budget"
    TUNNEL_CAP = "tunnel_cap"
    UPSTREAM_UNAVAILABLE = "upstream_unavailable"

    @property
    def camel(self) -> str:
        """The same code as the reason of a Kubernetes condition: `owner_active` is `OwnerActive`."""
        return "".join(word.capitalize() for word in self.value.split("_"))


HTTP_STATUS: dict[Reason, int] = {
    Reason.BAD_REQUEST: 400,
    Reason.AMBIGUOUS_BODY: 400,
    Reason.BACKGROUND_REFUSED: 400,
    Reason.UNAUTHORIZED: 401,
    Reason.MANAGEMENT_DENIED: 403,
    Reason.CLOUD_MODEL: 403,
    Reason.REQUEST_TIMEOUT: 408,
    Reason.BODY_TOO_LARGE: 413,
    Reason.CONTENT_ENCODING: 415,
    Reason.UNRECOGNISED_ROUTE: 501,
    Reason.UPSTREAM_INVALID: 502,
    Reason.UPSTREAM_TIMEOUT: 504,
}
"""Status of a refusal; every reason that is not listed is a 503."""


def http_status(reason: Reason) -> int:
    """The HTTP status that carries `reason`."""
    return HTTP_STATUS.get(reason, 503)


class ConditionType(StrEnum):
    """Conditions of a LendingHost. The agent owns the first four, the operator the last three."""

    CONFIG_APPLIED = "ConfigApplied"
    LENDABLE = "Lendable"
    PRESENCE_SIGNAL = "PresenceSignal"
    RECLAIMED = "Reclaimed"
    ACCEPTED = "Accepted"
    AGENT_CONNECTED = "AgentConnected"
    READY = "Ready"
