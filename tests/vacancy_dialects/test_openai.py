from __future__ import annotations

import pytest

from vacancy_dialects import BodyShape, EndMark, QueryRule, RouteClass, table_for

WORK, PASS, MANAGEMENT = RouteClass.WORK, RouteClass.PASS_THROUGH, RouteClass.MANAGEMENT
UNLISTED, UNKNOWN = RouteClass.UNLISTED_READ, RouteClass.UNRECOGNISED
TABLE = table_for("openai")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", [b"/health", b"/v1/models", b"/version", b"/ping"])
def test_reads(method: str, path: bytes):
    assert TABLE.classify(method, path, None).cls is PASS


def test_a_query_makes_health_management_and_is_dropped_from_the_list():
    assert TABLE.classify("GET", b"/health", b"include_slots=1").cls is MANAGEMENT
    match = TABLE.classify("GET", b"/v1/models", b"reload=1")
    assert (match.cls, match.target(b"reload=1")) == (PASS, b"/v1/models")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/responses",
        "/v1/messages",
        "/v1/embeddings",
        "/v2/embed",
        "/v1/score",
        "/score",
        "/v1/rerank",
        "/v2/rerank",
        "/rerank",
        "/pooling",
        "/classify",
        "/cohere/v2/chat",
        "/v1/systemone",
        "/generative_scoring",
        "/v1/chat/completions/batch",
        "/v1/messages/count_tokens",
        "/tokenize",
        "/detokenize",
        "/v1/chat/completions/render",
        "/v1/completions/derender",
        "/v1/audio/speech",
        "/v1/images/generations",
        "/v1/moderations",
    ],
)
def test_json_work(path: str):
    match = TABLE.classify("POST", path.encode(), b"beta=true")
    assert (match.cls, match.target(b"beta=true")) == (WORK, path.encode())
    assert match.route is not None
    assert match.route.shape is BodyShape.JSON
    assert match.route.relay_fields == {"priority"}
    assert match.route.background_refused == (path == "/v1/responses")


@pytest.mark.parametrize(
    "path",
    [b"/v1/audio/transcriptions", b"/v1/audio/translations", b"/v1/images/edits", b"/v1/images/variations"],
)
def test_form_work(path: bytes):
    match = TABLE.classify("POST", path, None)
    assert match.cls is WORK
    assert match.route is not None
    assert (match.route.shape, match.route.query) == (BodyShape.MULTIPART, QueryRule.REFUSE)


def test_realtime_is_work_as_a_tunnel_only():
    match = TABLE.classify("WS", b"/v1/realtime", None)
    assert match.cls is WORK
    assert TABLE.classify("GET", b"/v1/realtime", None).cls is UNLISTED


@pytest.mark.parametrize(
    "request_",
    [
        "GET /metrics",
        "GET /load",
        "GET /server_info",
        "GET /openapi.json",
        "POST /sleep",
        "POST /wake_up",
        "POST /abort_requests",
        "POST /v1/load_lora_adapter",
        "POST /collective_rpc",
        "GET /v1/responses/resp_1",
        "POST /v1/responses/resp_1/cancel",
        "POST /v1/batches",
        "POST /v1/files",
        "DELETE /v1/files/f1",
        "POST /v1/fine_tuning/jobs",
    ],
)
def test_management(request_: str):
    method, path = request_.split()
    assert TABLE.classify(method, path.encode(), None).cls is MANAGEMENT


def test_stored_responses_are_open_for_own_ids_only():
    assert [row.path for row in TABLE.rows if row.own_ids] == [
        "/v1/responses/{response_id}",
        "/v1/responses/{response_id}/cancel",
    ]


@pytest.mark.parametrize(
    ("method", "path", "cls"),
    [
        ("POST", b"/invocations", UNKNOWN),
        ("POST", b"/inference/v1/generate", UNKNOWN),
        ("POST", b"/ping", UNKNOWN),
        ("POST", b"/completion", UNKNOWN),
        ("OPTIONS", b"/v1/models", UNKNOWN),
        ("GET", b"/metricsXYZ", UNLISTED),
        ("GET", b"/v1/chat/completions", UNLISTED),
        ("GET", b"/v1/chat/completions/abc", UNLISTED),
        ("GET", b"/v1/responses/resp_1/input_items", UNLISTED),
        ("GET", b"/v1/models/..%2Fapi%2Fps", UNLISTED),
        ("GET", b"/static/x.js", UNLISTED),
        ("GET", b"/slots", UNLISTED),
    ],
)
def test_everything_else(method: str, path: bytes, cls: RouteClass):
    assert TABLE.classify(method, path, None).cls is cls


def test_every_stream_of_generation_has_a_known_end():
    generating = (
        "chat/completions",
        "/v1/completions",
        "/responses",
        "/messages",
        "speech",
        "images",
        "audio",
    )
    rows = [row for row in TABLE.rows if row.cls is WORK and row.path.endswith(generating)]
    assert len(rows) == 5
    assert all(row.end is not EndMark.UNKNOWN for row in rows)
