from __future__ import annotations

import json

import pytest

from vacancy_dialects.response_ids import MOST, ResponseIdWatch

ID = "resp_0123456789abcdef"
CREATED = {"type": "response.created", "response": {"id": ID, "instructions": "be brief"}}


def read(reply: bytes, *, stream: bool, step: int = 7) -> ResponseIdWatch:
    watch = ResponseIdWatch(stream=stream)
    for at in range(0, len(reply), step):
        watch.feed(reply[at : at + step])
    return watch


@pytest.mark.parametrize("step", [1, 7, 4096])
def test_the_first_key_of_an_object(step: int):
    assert read(json.dumps({"id": ID, "object": "response"}).encode(), stream=False, step=step).id == ID


@pytest.mark.parametrize("step", [1, 7, 4096])
@pytest.mark.parametrize("before", [b"", b"event: response.created\n", b": hello\n\n"])
def test_the_response_of_a_stream_s_first_event(before: bytes, step: int):
    reply = before + b"data: " + json.dumps(CREATED).encode() + b"\r\n\n"
    assert read(reply, stream=True, step=step).id == ID


@pytest.mark.parametrize(
    "reply",
    [
        {"metadata": {"id": ID}, "id": "resp_own"},
        {"id": 7},
        {"id": "resp/../other"},
        {"id": ""},
        [{"id": ID}],
        {"error": {"message": "x" * 600, "id": ID}},
    ],
)
def test_what_may_be_echoed_is_not_taken_for_an_id(reply: object):
    assert read(json.dumps(reply).encode(), stream=False).id is None


@pytest.mark.parametrize(
    "event",
    [
        CREATED | {"type": "response.in_progress"},
        CREATED | {"response": {"metadata": {"id": ID}}},
        CREATED | {"response": {"id": "resp/../other"}},
        {"id": ID},
        "[DONE]",
    ],
)
def test_other_first_events_name_none(event: object):
    first = b"data: " + json.dumps(event).encode() + b"\n\n"
    later = b"data: " + json.dumps(CREATED).encode() + b"\n\n"
    watch = read(first + later, stream=True)
    assert (watch.id, watch.over) == (None, True)


@pytest.mark.parametrize("stream", [False, True])
def test_it_keeps_no_more_than_it_needs(stream: bool):
    watch = ResponseIdWatch(stream=stream)
    for _ in range(3 * MOST >> 10):
        watch.feed(b" " * 1024)
    assert watch.over
    assert len(watch._start) == 0
