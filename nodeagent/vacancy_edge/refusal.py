"""Refusals: one shape for every answer that is ours, so that a client always learns what to do next.

Under overload refusals are the hot path, therefore one whose wording does not depend on the request is
encoded once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from vacancy_api.reasons import Reason, http_status
from vacancy_http.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

SOON: Final = 5
"""Seconds: up to this hint a client of the agent may retry by itself."""

_ENCODE: Final = msgspec.json.Encoder().encode
_TYPE: Final = (b"content-type", b"application/json")
_STOP: Final = (b"x-should-retry", b"false")
_CHALLENGE: Final = (b"www-authenticate", b'Bearer realm="vacancy"')
_REASON_HEADERS: Final = {reason: (b"x-vacancy-reason", reason.value.encode()) for reason in Reason}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that is answered by us, and why.

    `retry_after` is in seconds, at least 1, and None where the same request would be refused again. `status`
    is set only where it is not the one of the reason.
    """

    reason: Reason
    message: str
    retry_after: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    status: int | None = None

    @property
    def http_status(self) -> int:
        """The status of the answer."""
        return self.status or http_status(self.reason)


def refusal_reply(refusal: Refusal, *, gateway: bool = False) -> Reply:
    """The answer that carries `refusal`; a gateway tells clients never to retry by themselves."""
    hint = None if refusal.retry_after is None else max(1, refusal.retry_after)
    if not refusal.detail:
        return _plain_reply(refusal.reason, refusal.message, hint, refusal.http_status, gateway)
    body = _body(refusal.reason, refusal.message, refusal.detail)
    return Reply(refusal.http_status, _headers(refusal.reason, hint, refusal.http_status, gateway), body)


@lru_cache(maxsize=256)
def _plain_reply(reason: Reason, message: str, hint: int | None, status: int, gateway: bool) -> Reply:
    return Reply(status, _headers(reason, hint, status, gateway), _body(reason, message, {}))


def _body(reason: Reason, message: str, detail: Mapping[str, Any]) -> bytes:
    error = {"message": message, "type": "no_vacancy", "code": reason.value, "param": None, "detail": detail}
    return _ENCODE({"error": error})


@lru_cache(maxsize=1024)
def _headers(reason: Reason, hint: int | None, status: int, gateway: bool) -> tuple[tuple[bytes, bytes], ...]:
    headers = [_TYPE, _REASON_HEADERS[reason]]
    if hint is not None:
        headers.append((b"retry-after", b"%d" % hint))
    if gateway or hint is None or hint > SOON:
        headers.append(_STOP)
    if status == http_status(Reason.UNAUTHORIZED):
        headers.append(_CHALLENGE)
    return tuple(headers)
