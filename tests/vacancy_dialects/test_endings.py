from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vacancy_dialects import EndMark, EndWatch, Route, RouteClass, needs_marker, table_for
from vacancy_dialects.endings import MAX_LINE, is_end

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "llama"
STREAMING = [mark for mark in EndMark if mark is not EndMark.UNKNOWN]


def route_of(mark: EndMark) -> Route:
    return Route(methods=("POST",), path="/x", cls=RouteClass.WORK, end=mark)


def watch(mark: EndMark, *chunks: bytes) -> bool:
    watching = EndWatch(route_of(mark))
    for chunk in chunks:
        watching.feed(chunk)
    return watching.seen


def recorded(name: str) -> bytes:
    """The body of a recorded chunked reply."""
    rest = (FIXTURES / name).read_bytes().partition(b"\r\n\r\n")[2]
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return body


RECORDED = [
    ("/v1/chat/completions", "b11434_chat_stream.http"),
    ("/completion", "b11434_completion_stream.http"),
    ("/v1/messages", "b11434_messages_stream.http"),
    ("/v1/responses", "b11434_responses_stream.http"),
]


@pytest.mark.parametrize(("path", "name"), RECORDED)
def test_a_recorded_stream_ends_wherever_it_is_split(path: str, name: str):
    route = table_for("llamacpp").classify("POST", path.encode(), None).route
    assert route is not None
    body = recorded(name)
    for cut in range(len(body)):
        assert watch(route.end, body[:cut], body[cut:])
    assert watch(route.end, *[body[at : at + 1] for at in range(len(body))])


@pytest.mark.parametrize(("path", "name"), RECORDED)
def test_a_recorded_stream_without_its_last_events_did_not_end(path: str, name: str):
    route = table_for("llamacpp").classify("POST", path.encode(), None).route
    assert route is not None
    events = recorded(name).split(b"\n\n")
    kept = [event for event in events if not any(is_end(route.end, line[5:]) for line in event.splitlines())]
    assert 0 < len(kept) < len(events)
    assert not watch(route.end, b"\n\n".join(kept))


def test_a_routers_stream_that_was_unloaded_midway_ends_cleanly_and_did_not_end():
    body = (FIXTURES / "b11434_router_stream_unloaded_midway.body").read_bytes()
    assert not watch(EndMark.CHAT, body)


CHAT = b'data: {"choices":[{"index":0,"delta":%b,"finish_reason":%b}]}\n\n'


@pytest.mark.parametrize(
    ("mark", "stream", "ended"),
    [
        (EndMark.CHAT, b"data: [DONE]\n\n", True),
        (EndMark.CHAT, b"data:[DONE]\r\n\r\n", True),
        (EndMark.CHAT, b"data: [DONE]", True),
        (EndMark.CHAT, b"data: [DONE] x\n\n", False),
        (EndMark.CHAT, b"x data: [DONE]\n\n", False),
        (EndMark.CHAT, b": [DONE]\n\n", False),
        (EndMark.CHAT, b"event: [DONE]\n\n", False),
        (EndMark.CHAT, CHAT % (b"{}", b'"stop"'), True),
        (EndMark.CHAT, CHAT % (b"{}", b' \t"length"'), True),
        (EndMark.CHAT, CHAT % (b"{}", b"null"), False),
        (EndMark.CHAT, CHAT % (b"{}", b" null"), False),
        (EndMark.CHAT, CHAT % (b'{"content":"data: [DONE]"}', b"null"), False),
        (EndMark.CHAT, CHAT % (b'{"content":"\\n\\ndata: [DONE]\\n\\n"}', b"null"), False),
        (EndMark.CHAT, CHAT % (rb'{"content":"\"finish_reason\":\"stop\""}', b"null"), False),
        (EndMark.CHAT, CHAT % (b'{"tool":{"finish_reason":"stop"}}', b"null"), False),
        (EndMark.CHAT, b'data: {"finish_reason":"stop"}\n\n', False),
        (EndMark.CHAT, b'data: {"choices":[{"finish_reason":"stop"}', False),
        (EndMark.CHAT, b'data: {"error":{"message":"finish_reason\\":\\"stop"}}\n\n', False),
        (EndMark.MESSAGES, b'event: message_stop\ndata: {"type":"message_stop"}\n\n', True),
        (EndMark.MESSAGES, b"event: message_stop\n\n", False),
        (EndMark.MESSAGES, b'data: {"type":"content","text":"message_stop"}\n\n', False),
        (EndMark.MESSAGES, b'data: {"type":"x","delta":{"type":"message_stop"}}\n\n', False),
        (EndMark.RESPONSES, b'data: {"type":"response.completed","response":{}}\n\n', True),
        (EndMark.RESPONSES, b'data: {"type":"response.failed"}\n\n', True),
        (EndMark.RESPONSES, b'data: {"response":{},"type":"response.incomplete"}\n\n', True),
        (
            EndMark.RESPONSES,
            b'data: {"type":"response.output_text.delta","delta":"response.completed"}\n\n',
            False,
        ),
        (EndMark.NATIVE, b'data: {"content":"","stop":true}\n\n', True),
        (EndMark.NATIVE, b'data: {"content":"", "stop": true}\n\n', True),
        (EndMark.NATIVE, rb'data: {"content":"\"stop\":true","stop":false}' + b"\n\n", False),
        (EndMark.NATIVE, b'data: {"stop":false,"generation_settings":{"stop":true}}\n\n', False),
        (EndMark.NATIVE, b'data: {"stop":["x"]}\n\n', False),
        (EndMark.DONE, b'{"model":"m","done":false}\n{"model":"m","done":true}\n', True),
        (EndMark.DONE, b'{"model":"m", "done": true}', True),
        (EndMark.DONE, b'{"response":"","done":true,"done_reason":"stop"}\r\n', True),
        (EndMark.DONE, b'{"response":"\\"done\\":true","done":false}\n', False),
        (EndMark.DONE, b'{"x":{"done":true},"done":false}\n', False),
        (EndMark.DONE, b'{"error":"the runner has ended, it is \\"done\\""}\n', False),
        (EndMark.DONE, b'data: {"done":true}\n', False),
        (EndMark.DONE, b'{"done":"true"}\n', False),
        (EndMark.DONE, b'[{"done":true}]\n', False),
        (EndMark.TRANSCRIPT, b'data: {"type":"transcript.text.done","text":""}\n\n', True),
        (EndMark.TRANSCRIPT, b"data: [DONE]\n\n", True),
        (EndMark.TRANSCRIPT, b'data: {"type":"transcript.text.delta","delta":"[DONE]"}\n\n', False),
        (EndMark.SPEECH, b'data: {"type":"speech.audio.done"}\n\n', True),
        (EndMark.SPEECH, b'data: {"type":"speech.audio.delta"}\n\n', False),
        (EndMark.IMAGE, b'data: {"type":"image_generation.completed"}\n\n', True),
        (EndMark.IMAGE, b'data: {"type":"image_edit.partial_image"}\n\n', False),
        (EndMark.UNKNOWN, b'data: [DONE]\n\ndata: {"stop":true,"type":"message_stop"}\n\n', False),
        (EndMark.CHAT, b'data: {"choices":' + b"[" * 100_000 + b'"finish_reason":"x"\n\n', False),
    ],
)
def test_what_counts_as_an_end(mark: EndMark, stream: bytes, ended: bool):
    assert watch(mark, stream) is ended
    assert watch(mark, *[stream[at : at + 7] for at in range(0, len(stream), 7)]) is ended


def test_a_line_that_is_too_long_is_passed_over_and_its_tail_is_no_line():
    long = b'data: {"x":"' + b"y" * MAX_LINE
    assert not watch(EndMark.CHAT, long, b"data: [DONE]\n\n")
    assert not watch(EndMark.CHAT, long, b"y" * MAX_LINE, b"data: [DONE]\n\n")
    assert watch(EndMark.CHAT, long, b"\n\n", b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    ("content_type", "needed"),
    [
        (b"text/event-stream", True),
        (b"Text/Event-Stream; charset=utf-8", True),
        (b"application/x-ndjson", True),
        (b"application/json; charset=utf-8", False),
        (b"audio/mpeg", False),
        (None, False),
    ],
)
def test_a_stream_of_events_must_show_its_end(content_type: bytes | None, needed: bool):
    assert needs_marker(route_of(EndMark.CHAT), content_type) is needed
    assert needs_marker(route_of(EndMark.UNKNOWN), content_type) is needed


# A second, dumb reader: the whole text at once, every line parsed with the standard library.


def ends(mark: EndMark, text: bytes) -> bool:
    if mark is EndMark.DONE:
        return any(line_ends(line) for line in text.split(b"\n"))
    return any(event_ends(mark, line[5:].strip()) for line in text.split(b"\n") if line.startswith(b"data:"))


def line_ends(line: bytes) -> bool:
    return line.startswith(b"{") and json.loads(line).get("done") is True


def event_ends(mark: EndMark, data: bytes) -> bool:
    if mark in {EndMark.CHAT, EndMark.TRANSCRIPT} and data == b"[DONE]":
        return True
    event = json.loads(data) if data.startswith(b"{") else {}
    chat = any(choice["finish_reason"] is not None for choice in event.get("choices", []))
    return {
        EndMark.CHAT: chat,
        EndMark.TRANSCRIPT: chat or event.get("type") == "transcript.text.done",
        EndMark.NATIVE: event.get("stop") is True,
        EndMark.MESSAGES: event.get("type") == "message_stop",
        EndMark.RESPONSES: str(event.get("type")).removeprefix("response.")
        in {"completed", "failed", "incomplete"},
        EndMark.SPEECH: event.get("type") == "speech.audio.done",
        EndMark.IMAGE: event.get("type") in {"image_generation.completed", "image_edit.completed"},
    }[mark]


TEXTS = st.sampled_from(
    [
        "the",
        "[DONE]",
        "\n\ndata: [DONE]\n\n",
        '"finish_reason":"stop"',
        '"stop":true',
        '"done":true',
        '\n{"done":true}\n',
        '{"type":"message_stop"}',
        "response.completed",
        "é[",
        "transcript.text.done",
        ".completed",
    ]
)
TYPES = st.sampled_from(
    [
        "x",
        "message_stop",
        "response.completed",
        "response.failed",
        "response.output_text.delta",
        "transcript.text.done",
        "speech.audio.done",
        "image_edit.completed",
    ]
)
EVENTS = st.one_of(
    st.fixed_dictionaries(
        {
            "choices": st.lists(
                st.fixed_dictionaries({"finish_reason": st.sampled_from([None, "stop"]), "delta": TEXTS}),
                max_size=2,
            )
        }
    ),
    st.fixed_dictionaries({"type": TYPES, "delta": TEXTS}),
    st.fixed_dictionaries({"content": TEXTS, "stop": st.booleans(), "settings": st.just({"stop": []})}),
    st.fixed_dictionaries({"response": TEXTS, "done": st.booleans(), "x": st.just({"done": True})}),
)
LINES = st.one_of(
    st.tuples(
        EVENTS, st.sampled_from([(",", ":"), (", ", ": ")]), st.booleans(), st.sampled_from([b"data: ", b""])
    ).map(lambda event: event[3] + json.dumps(event[0], separators=event[1], ensure_ascii=event[2]).encode()),
    st.sampled_from(
        [b"data: [DONE]", b"data:[DONE]", b": comment [DONE]", b"event: message_stop", b"", b"id: 1"]
    ),
)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(STREAMING),
    st.lists(LINES, max_size=8),
    st.sampled_from([b"\n\n", b"\r\n\r\n", b"\n"]),
    st.lists(st.integers(0, 900), max_size=8),
)
def test_it_agrees_with_a_reader_of_the_whole_text(
    mark: EndMark, lines: list[bytes], gap: bytes, cuts: list[int]
):
    text = gap.join([*lines, b""])
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    chunks = [text[start:end] for start, end in pairwise(edges)]
    assert watch(mark, *chunks) is ends(mark, text)
