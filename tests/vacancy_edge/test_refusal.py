from __future__ import annotations

import json

import pytest

from vacancy_api.reasons import HTTP_STATUS, Reason
from vacancy_edge import Refusal, refusal_reply


def headers_of(refusal: Refusal, *, gateway: bool = False) -> dict[bytes, bytes]:
    pairs = refusal_reply(refusal, gateway=gateway).headers
    assert len({name for name, _ in pairs}) == len(pairs)
    return dict(pairs)


def test_the_whole_shape():
    reply = refusal_reply(Refusal(Reason.OWNER_ACTIVE, "The owner is here.", 30, {"presence": "active"}))
    assert reply.status == 503
    assert json.loads(reply.body) == {
        "error": {
            "message": "The owner is here.",
            "type": "no_vacancy",
            "code": "owner_active",
            "param": None,
            "detail": {"presence": "active"},
        }
    }
    assert dict(reply.headers) == {
        b"content-type": b"application/json",
        b"x-vacancy-reason": b"owner_active",
        b"retry-after": b"30",
        b"x-should-retry": b"false",
    }


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_its_status_and_its_header(reason: Reason):
    reply = refusal_reply(Refusal(reason, "No."))
    assert reply.status == HTTP_STATUS.get(reason, 503)
    assert (b"x-vacancy-reason", reason.value.encode()) in reply.headers
    assert json.loads(reply.body)["error"]["detail"] == {}


@pytest.mark.parametrize(
    ("hint", "gateway", "retry_after", "should_retry"),
    [
        (2, False, b"2", None),
        (5, False, b"5", None),
        (6, False, b"6", b"false"),
        (2, True, b"2", b"false"),
        (0, False, b"1", None),
        (-3, False, b"1", None),
        (None, False, None, b"false"),
    ],
)
def test_hints(hint: int | None, gateway: bool, retry_after: bytes | None, should_retry: bytes | None):
    headers = headers_of(Refusal(Reason.RESOURCE_BUSY, "Busy.", hint), gateway=gateway)
    assert headers.get(b"retry-after") == retry_after
    assert headers.get(b"x-should-retry") == should_retry


def test_only_a_401_challenges():
    assert headers_of(Refusal(Reason.UNAUTHORIZED, "Who?"))[b"www-authenticate"].startswith(b"Bearer ")
    assert b"www-authenticate" not in headers_of(Refusal(Reason.MANAGEMENT_DENIED, "No."))


def test_a_status_of_its_own_wins():
    assert refusal_reply(Refusal(Reason.BAD_REQUEST, "Too much.", status=431)).status == 431


def test_a_wording_that_does_not_change_is_encoded_once():
    assert refusal_reply(Refusal(Reason.UNAUTHORIZED, "Who?")) is refusal_reply(
        Refusal(Reason.UNAUTHORIZED, "Who?")
    )
