"""What an answer that is none means."""

from __future__ import annotations

import json

import pytest

from vacancy_agent.cluster.fault import ApiError, fault_in_event, fault_of


@pytest.mark.parametrize(
    ("status", "outage", "denied", "lasting"),
    [
        (None, True, False, False),
        (401, True, True, True),
        (403, False, True, True),
        (404, False, False, True),
        (410, False, False, False),
        (422, False, False, True),
        (429, False, False, False),
        (500, True, False, False),
        (503, True, False, False),
    ],
)
def test_what_a_status_means(status: int | None, outage: bool, denied: bool, lasting: bool):
    fault = ApiError(status, "why")
    assert (fault.outage, fault.denied, fault.lasting) == (outage, denied, lasting)


def test_a_field_that_the_schema_lacks_is_a_500_that_stays():
    fault = ApiError(
        500, "failed to create typed patch object: .status.agent.new: field not declared in schema"
    )
    assert (fault.outage, fault.lasting) == (False, True)


def test_the_servers_own_words_are_kept():
    fault = fault_of(403, {"Retry-After": "7"}, json.dumps({"message": "not you"}).encode())
    assert (str(fault), fault.retry_after) == ("403 not you", 7.0)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"\xff", b"{}"])
def test_an_answer_without_a_status_document(body: bytes):
    assert fault_of(502, {"Retry-After": "soon"}, body).status == 502


def test_a_server_cannot_make_us_wait_for_ever():
    assert fault_of(429, {"Retry-After": "100000"}, b"").retry_after == 60.0


def test_an_event_of_a_watch():
    assert fault_in_event({"object": {"code": 410, "message": "too old"}}).status == 410
    assert fault_in_event({"object": "?"}).status == 500
