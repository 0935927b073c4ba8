from __future__ import annotations

import pytest

from vacancy_api.reasons import Reason
from vacancy_dialects import table_for
from vacancy_edge import Refusal, refusals
from vacancy_http.faults import ProtocolFault


@pytest.mark.parametrize(
    ("refusal", "reason", "words"),
    [
        (refusals.bad_request("x"), Reason.BAD_REQUEST, ["x"]),
        (refusals.ambiguous_body("x"), Reason.AMBIGUOUS_BODY, ["x"]),
        (refusals.background_refused(), Reason.BACKGROUND_REFUSED, ['Leave out "background"']),
        (refusals.unauthorized(), Reason.UNAUTHORIZED, ["Authorization: Bearer", "x-api-key"]),
        (
            refusals.management_denied(table_for("llamacpp"), "GET", b"/slots"),
            Reason.MANAGEMENT_DENIED,
            ["GET /slots", "without a query: GET /health", "GET /v1/models", "management: allow"],
        ),
        (
            refusals.management_denied(table_for("comfyui"), "GET", b"/queue"),
            Reason.MANAGEMENT_DENIED,
            ["GET /queue", "These reads are: GET /prompt", "GET /view"],
        ),
        (refusals.cloud_model("big:cloud"), Reason.CLOUD_MODEL, ["big:cloud", "local model"]),
        (refusals.request_timeout("the body took 120 s"), Reason.REQUEST_TIMEOUT, ["the body took 120 s"]),
        (refusals.body_too_large(64 << 20), Reason.BODY_TOO_LARGE, ["64 MiB", "maxRequestBodyMiB"]),
        (refusals.content_encoding(b"gzip"), Reason.CONTENT_ENCODING, ["gzip", "uncompressed"]),
        (
            refusals.unrecognised_route(table_for("openai"), "POST", b"/v9/think"),
            Reason.UNRECOGNISED_ROUTE,
            ["POST /v9/think", "openai", "report"],
        ),
        (
            refusals.unrecognised_route(table_for("ollama"), "POST", b"/chat/completions"),
            Reason.UNRECOGNISED_ROUTE,
            ["POST /chat/completions", "Did you mean /v1/chat/completions?", "base URL"],
        ),
        (
            refusals.unrecognised_route(table_for("ollama"), "POST", b"/v1/api/chat"),
            Reason.UNRECOGNISED_ROUTE,
            ["POST /v1/api/chat", "Did you mean /api/chat?"],
        ),
        (refusals.no_handshake("it has a body"), Reason.BAD_REQUEST, ["WebSocket", "it has a body"]),
        (refusals.websocket_query(), Reason.BAD_REQUEST, ["query", "model"]),
        (refusals.foreign_page(), Reason.UNAUTHORIZED, ["page", "Origin"]),
        (refusals.upstream_invalid("x"), Reason.UPSTREAM_INVALID, ["x"]),
        (refusals.upstream_timeout("x"), Reason.UPSTREAM_TIMEOUT, ["x"]),
        (refusals.upstream_unavailable("x"), Reason.UPSTREAM_UNAVAILABLE, ["x"]),
        (refusals.buffer_budget(), Reason.BUFFER_BUDGET, ["maxBufferedBodyMiB"]),
        (refusals.helper_lost("its reader died"), Reason.BUFFER_BUDGET, ["its reader died", "4 MiB"]),
        (refusals.tunnel_cap(), Reason.TUNNEL_CAP, ["maxTunnels"]),
    ],
    ids=lambda value: value.name if isinstance(value, Reason) else "",
)
def test_each_says_what_happened_and_what_to_do(refusal: Refusal, reason: Reason, words: list[str]):
    assert refusal.reason is reason
    assert [word for word in words if word not in refusal.message] == []
    assert (refusal.retry_after is None) == (refusal.http_status in {400, 401, 403, 413, 415, 501})


def test_what_a_client_sent_is_shown_escaped_and_short():
    assert refusals.shown(b"/a\r\nSet-Cookie: x\x1b[2J") == "/a\\r\\nSet-Cookie: x\\x1b[2J"
    assert refusals.shown("é" * 500).isascii()
    assert len(refusals.shown(b"/" * 60_000)) < 130


@pytest.mark.parametrize("fault", list(ProtocolFault))
def test_every_fault_of_the_engine_has_a_refusal_of_its_status(fault: ProtocolFault):
    refusal = refusals.of_fault(fault, "because", max_body=1 << 20)
    assert refusal.http_status == fault.status
    assert (refusal.retry_after is None) == (fault.status in {400, 413, 431})
