"""What can go wrong with a call to the API server, told apart by what it means for whoever called."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

UNAUTHORIZED, FORBIDDEN, MISSING, EXPIRED, THROTTLED, BROKEN = 401, 403, 404, 410, 429, 500
_SHOWN = 400
_LONGEST_WAIT_S = 60.0
_UNKNOWN_FIELD = "field not declared in schema"


class ApiError(Exception):
    """A call that did not do what it was for."""

    def __init__(self, status: int | None, why: str, retry_after: float | None = None) -> None:
        super().__init__(status, why)
        self.status = status
        """HTTP status; None: no answer that can be read."""
        self.why = why
        """For people."""
        self.retry_after = retry_after
        """Seconds that the server asks us to wait."""

    def __str__(self) -> str:
        return self.why if self.status is None else f"{self.status} {self.why}"

    @property
    def outage(self) -> bool:
        """The API server, or our right to talk to it, is gone for now."""
        if self.status is None or self.status == UNAUTHORIZED:
            return True
        return self.status >= BROKEN and not self.lasting

    @property
    def denied(self) -> bool:
        """It knows us and refuses, or does not know us."""
        return self.status in {UNAUTHORIZED, FORBIDDEN}

    @property
    def lasting(self) -> bool:
        """The same call will be refused again until somebody changes something."""
        if self.status == BROKEN:  # how a server answers an apply with a field that its schema does not have
            return _UNKNOWN_FIELD in self.why
        return self.status is not None and self.status < BROKEN and self.status not in {EXPIRED, THROTTLED}


def fault_of(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The fault in an answer above 399, with the server's own words where there are any."""
    try:
        why = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        why = body[:_SHOWN].decode(errors="replace").strip() or "without a reason"
    return ApiError(status, why[:_SHOWN], _seconds(headers.get("Retry-After")))


def fault_in_event(event: Mapping[str, object]) -> ApiError:
    """The fault in a watch's ERROR event, whose object is a Status."""
    status = event.get("object")
    told = status if isinstance(status, dict) else {}
    code = told.get("code")
    return ApiError(
        code if isinstance(code, int) else BROKEN, str(told.get("message", "the watch failed"))[:_SHOWN]
    )


def _seconds(header: str | None) -> float | None:
    if header is None or not header.strip().isdigit():
        return None
    return min(float(header), _LONGEST_WAIT_S)
