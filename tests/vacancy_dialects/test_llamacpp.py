from __future__ import annotations

import pytest

from vacancy_dialects import BodyShape, EndMark, QueryRule, ReplyRule, RouteClass, table_for

WORK, PASS, MANAGEMENT = RouteClass.WORK, RouteClass.PASS_THROUGH, RouteClass.MANAGEMENT
UNLISTED, UNKNOWN = RouteClass.UNLISTED_READ, RouteClass.UNRECOGNISED
TABLE = table_for("llamacpp")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", [b"/health", b"/v1/health", b"/v1/models", b"/models"])
def test_reads_pass_without_a_query_and_are_management_with_one(method: str, path: bytes):
    assert TABLE.classify(method, path, None).cls is PASS
    assert TABLE.classify(method, path, b"reload=1").cls is MANAGEMENT


@pytest.mark.parametrize(
    ("path", "end"),
    [
        ("/v1/chat/completions", EndMark.CHAT),
        ("/chat/completions", EndMark.CHAT),
        ("/v1/completions", EndMark.CHAT),
        ("/completions", EndMark.NATIVE),
        ("/completion", EndMark.NATIVE),
        ("/infill", EndMark.NATIVE),
        ("/v1/responses", EndMark.RESPONSES),
        ("/responses", EndMark.RESPONSES),
        ("/v1/messages", EndMark.MESSAGES),
        *[
            (path, EndMark.UNKNOWN)
            for path in [
                "/v1/embeddings",
                "/embeddings",
                "/embedding",
                "/v1/rerank",
                "/rerank",
                "/v1/reranking",
                "/reranking",
                "/v1/systemone",
                "/tokenize",
                "/detokenize",
                "/apply-template",
                "/v1/chat/completions/input_tokens",
                "/chat/completions/input_tokens",
                "/v1/responses/input_tokens",
                "/responses/input_tokens",
                "/v1/messages/count_tokens",
            ]
        ],
    ],
)
def test_json_work(path: str, end: EndMark):
    match = TABLE.classify("POST", path.encode(), b"beta=true")
    assert match.cls is WORK
    assert match.target(b"beta=true") == path.encode()
    assert match.route is not None
    assert (match.route.shape, match.route.end) == (BodyShape.JSON, end)
    assert match.route.background_refused == path.endswith("/responses")
    assert not match.route.relay_fields


@pytest.mark.parametrize("path", [b"/v1/audio/transcriptions", b"/audio/transcriptions"])
def test_form_work(path: bytes):
    match = TABLE.classify("POST", path, None)
    assert match.cls is WORK
    assert match.route is not None
    assert match.route.shape is BodyShape.MULTIPART
    assert match.route.query is QueryRule.REFUSE


@pytest.mark.parametrize(
    "request_",
    [
        "POST /v1/chat/completions/control",
        "GET /slots",
        "HEAD /slots",
        "POST /slots/0",
        "GET /metrics",
        "GET /props",
        "POST /props",
        "GET /lora-adapters",
        "POST /lora-adapters",
        "GET /v1/stream",
        "DELETE /v1/stream",
        "POST /v1/streams/lookup",
        "POST /models/load",
        "POST /models/unload",
        "POST /models",
        "DELETE /models",
        "GET /models/sse",
        "GET /tools",
        "POST /tools",
        "GET /cors-proxy",
        "POST /cors-proxy",
    ],
)
def test_management(request_: str):
    method, path = request_.split()
    assert TABLE.classify(method, path.encode(), None).cls is MANAGEMENT
    assert TABLE.classify(method, path.encode(), b"model=x").cls is MANAGEMENT


@pytest.mark.parametrize(
    ("method", "path", "cls"),
    [
        ("GET", b"/", UNLISTED),
        ("GET", b"/index.html", UNLISTED),
        ("GET", b"/v1/models/some-id", UNLISTED),
        ("GET", b"/v1/models/..%2F..%2Fslots", UNLISTED),
        ("GET", b"/%73lots", UNLISTED),
        ("GET", b"/slots/", UNLISTED),
        ("GET", b"//slots", UNLISTED),
        ("GET", b"/SLOTS", UNLISTED),
        ("OPTIONS", b"/v1/chat/completions", UNKNOWN),
        ("PUT", b"/props", UNKNOWN),
        ("POST", b"/predict", UNKNOWN),
        ("WS", b"/v1/realtime", UNKNOWN),
    ],
)
def test_everything_else(method: str, path: bytes, cls: RouteClass):
    assert TABLE.classify(method, path, None).cls is cls


def test_both_model_lists_are_the_rewritten_replies():
    rewritten = {row.path for row in TABLE.rows if row.reply is not ReplyRule.AS_IS}
    assert rewritten == {"/v1/models", "/models"}
