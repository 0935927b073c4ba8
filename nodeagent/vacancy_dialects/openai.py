"""Routes of OpenAI-compatible servers: vLLM 0.32 first, with what other servers add.

Classes and reasons: docs/routes.md. Not listed on purpose: vLLM's /invocations (it dispatches by body shape,
and a header replaces the body's model) and /inference/v1/generate (token-in token-out), which therefore
answer 501.
"""

from __future__ import annotations

from typing import Final

from vacancy_dialects.routes import WEBSOCKET, EndMark, QueryRule, Route, RouteClass
from vacancy_dialects.rows import GET, POST, Rows

_STRIP: Final = frozenset({b"x-conversation-id", b"x-amzn-sagemaker-adapter-identifier"})
"""The first is llama-server's, which may stand behind this dialect too; the second replaces vLLM's model."""
_RELAY_HEADERS: Final = frozenset({b"x-vllm-priority"})
_RELAY_FIELDS: Final = frozenset({"priority"})
"""A borrower does not rank its own work; the gateway does."""
_ITS: Final = Rows(strip=_STRIP, relay_headers=_RELAY_HEADERS, relay_fields=_RELAY_FIELDS)

_READS: Final = (
    # A health check needs no query; on llama-server one once read slot state.
    *_ITS.read("/health"),
    # Without its query (`?reload=1` of a llama-server router) the list is what every client expects.
    *_ITS.read("/v1/models", "/ping", "/version", query=QueryRule.DROP),
)

_WORK: Final = (
    *_ITS.work("/v1/chat/completions", "/v1/chat/completions/batch", "/v1/completions", end=EndMark.CHAT),
    *_ITS.work("/v1/responses", end=EndMark.RESPONSES, background_refused=True, issues_ids=True),
    *_ITS.work("/v1/messages", end=EndMark.MESSAGES),
    *_ITS.work("/v1/embeddings", "/v2/embed", "/v1/score", "/score", "/v1/rerank", "/v2/rerank", "/rerank"),
    *_ITS.work("/pooling", "/classify", "/cohere/v2/chat", "/v1/systemone", "/generative_scoring"),
    *_ITS.form("/v1/audio/transcriptions", "/v1/audio/translations", end=EndMark.TRANSCRIPT),
    # On the CPU only, but they take the server's time, and the model they name must be a lent one.
    *_ITS.work("/v1/messages/count_tokens", "/tokenize", "/detokenize"),
    *_ITS.work("/v1/chat/completions/render", "/v1/completions/render", "/v1/responses/render"),
    *_ITS.work("/v1/messages/render", "/v1/embeddings/render"),
    *_ITS.work("/v1/chat/completions/derender", "/v1/completions/derender", "/v1/responses/derender"),
    *_ITS.work("/v1/messages/derender", "/v1/embeddings/derender"),
    # Served by others under the same dialect.
    *_ITS.work("/v1/audio/speech", end=EndMark.SPEECH),
    *_ITS.work("/v1/images/generations", end=EndMark.IMAGE),
    *_ITS.form("/v1/images/edits", "/v1/images/variations", end=EndMark.IMAGE),
    *_ITS.work("/v1/moderations"),
    Route(
        methods=(WEBSOCKET,),
        path="/v1/realtime",
        cls=RouteClass.WORK,
        query=QueryRule.REFUSE,
        strip_headers=_STRIP,
        relay_headers=_RELAY_HEADERS,
    ),
)

_STATE: Final = (
    "/load", "/kv_event_sources", "/metrics", "/tokenizer_info", "/server_info", "/is_sleeping", "/is_paused",
    "/weight_info", "/get_world_size", "/fault_tolerance/status", "/docs", "/openapi.json", "/redoc",
)  # fmt: skip

_SWITCHES: Final = (
    "/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/start_profile", "/stop_profile",
    "/scale_elastic_ep", "/is_scaling_elastic_ep", "/fault_tolerance/apply",
)  # fmt: skip

_DEVELOPER: Final = (
    "/sleep", "/wake_up", "/release_kv_cache_memory", "/reset_prefix_cache", "/reset_mm_cache",
    "/reset_encoder_cache", "/collective_rpc", "/pause", "/resume", "/abort_requests",
    "/inference/v1/abort_requests", "/init_weight_transfer_engine", "/shutdown_weight_transfer_engine",
    "/start_weight_update", "/start_draft_weight_update", "/update_weights", "/finish_weight_update",
    "/update_weight_version", "/weight_checker",
)  # fmt: skip
"""Served with VLLM_SERVER_DEV_MODE=1."""

_MANAGEMENT: Final = (
    *_ITS.management(GET, *_STATE),
    *_ITS.management(POST, *_SWITCHES, *_DEVELOPER),
    *_ITS.management(GET, "/v1/responses/{response_id}", own_ids=True),
    *_ITS.management(POST, "/v1/responses/{response_id}/cancel", own_ids=True),
    # Stores of other servers: what is in them is not only the borrower's, and a batch outlives its request.
    *_ITS.management((*GET, "POST"), "/v1/files", "/v1/batches", "/v1/fine_tuning/jobs"),
    *_ITS.management((*GET, "DELETE"), "/v1/files/{file_id}"),
    *_ITS.management(
        GET, "/v1/files/{file_id}/content", "/v1/batches/{batch_id}", "/v1/fine_tuning/jobs/{job_id}"
    ),
    *_ITS.management(POST, "/v1/batches/{batch_id}/cancel", "/v1/fine_tuning/jobs/{job_id}/cancel"),
    *_ITS.management(
        GET, "/v1/fine_tuning/jobs/{job_id}/events", "/v1/fine_tuning/jobs/{job_id}/checkpoints"
    ),
)

ROWS: Final[tuple[Route, ...]] = (*_READS, *_WORK, *_MANAGEMENT)
