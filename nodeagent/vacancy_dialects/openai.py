"""Routes of OpenAI-compatible servers: vLLM 0.32 first, with what other servers add.

Classes and reasons: docs/routes.md. Not listed on purpose: vLLM's /invocations (it dispatches by body shape,
and a header replaces the body's model) and /inference/v1/generate (token-in token-out), which therefore
answer 501.
"""

from __future__ import annotations

from typing import Final

from vacancy_dialects.routes import WEBSOCKET, BodyShape, EndMark, QueryRule, Route, RouteClass

_STRIP: Final = frozenset({b"x-conversation-id", b"x-amzn-sagemaker-adapter-identifier"})
"""The first is llama-server's, which may stand behind this dialect too; the second replaces vLLM's model."""
_RELAY_HEADERS: Final = frozenset({b"x-vllm-priority"})
_RELAY_FIELDS: Final = frozenset({"priority"})
"""A borrower does not rank its own work; the gateway does."""


def _work(
    *paths: str,
    end: EndMark = EndMark.UNKNOWN,
    background_refused: bool = False,
    issues_ids: bool = False,
) -> tuple[Route, ...]:
    return tuple(
        Route(
            methods=("POST",),
            path=path,
            cls=RouteClass.WORK,
            shape=BodyShape.JSON,
            query=QueryRule.DROP,
            end=end,
            background_refused=background_refused,
            issues_ids=issues_ids,
            strip_headers=_STRIP,
            relay_headers=_RELAY_HEADERS,
            relay_fields=_RELAY_FIELDS,
        )
        for path in paths
    )


def _form(*paths: str, end: EndMark) -> tuple[Route, ...]:
    return tuple(
        Route(
            methods=("POST",),
            path=path,
            cls=RouteClass.WORK,
            shape=BodyShape.MULTIPART,
            query=QueryRule.REFUSE,
            end=end,
            strip_headers=_STRIP,
            relay_headers=_RELAY_HEADERS,
            relay_fields=_RELAY_FIELDS,
        )
        for path in paths
    )


def _read(query: QueryRule, *paths: str) -> tuple[Route, ...]:
    return tuple(
        Route(
            methods=("GET", "HEAD"), path=path, cls=RouteClass.PASS_THROUGH, query=query, strip_headers=_STRIP
        )
        for path in paths
    )


def _management(methods: tuple[str, ...], *paths: str, own_ids: bool = False) -> tuple[Route, ...]:
    return tuple(
        Route(methods=methods, path=path, cls=RouteClass.MANAGEMENT, own_ids=own_ids, strip_headers=_STRIP)
        for path in paths
    )


_GET: Final = ("GET", "HEAD")
_POST: Final = ("POST",)

_READS: Final = (
    # A health check needs no query; on llama-server one once read slot state.
    *_read(QueryRule.MANAGEMENT, "/health"),
    # Without its query (`?reload=1` of a llama-server router) the list is what every client expects.
    *_read(QueryRule.DROP, "/v1/models", "/ping", "/version"),
)

_WORK: Final = (
    *_work("/v1/chat/completions", "/v1/chat/completions/batch", "/v1/completions", end=EndMark.CHAT),
    *_work("/v1/responses", end=EndMark.RESPONSES, background_refused=True, issues_ids=True),
    *_work("/v1/messages", end=EndMark.MESSAGES),
    *_work("/v1/embeddings", "/v2/embed", "/v1/score", "/score", "/v1/rerank", "/v2/rerank", "/rerank"),
    *_work("/pooling", "/classify", "/cohere/v2/chat", "/v1/systemone", "/generative_scoring"),
    *_form("/v1/audio/transcriptions", "/v1/audio/translations", end=EndMark.TRANSCRIPT),
    # On the CPU only, but they take the server's time, and the model they name must be a lent one.
    *_work("/v1/messages/count_tokens", "/tokenize", "/detokenize"),
    *_work("/v1/chat/completions/render", "/v1/completions/render", "/v1/responses/render"),
    *_work("/v1/messages/render", "/v1/embeddings/render"),
    *_work("/v1/chat/completions/derender", "/v1/completions/derender", "/v1/responses/derender"),
    *_work("/v1/messages/derender", "/v1/embeddings/derender"),
    # Served by others under the same dialect.
    *_work("/v1/audio/speech", end=EndMark.SPEECH),
    *_work("/v1/images/generations", end=EndMark.IMAGE),
    *_form("/v1/images/edits", "/v1/images/variations", end=EndMark.IMAGE),
    *_work("/v1/moderations"),
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
    *_management(_GET, *_STATE),
    *_management(_POST, *_SWITCHES, *_DEVELOPER),
    *_management(_GET, "/v1/responses/{response_id}", own_ids=True),
    *_management(_POST, "/v1/responses/{response_id}/cancel", own_ids=True),
    # Stores of other servers: what is in them is not only the borrower's, and a batch outlives its request.
    *_management((*_GET, "POST"), "/v1/files", "/v1/batches", "/v1/fine_tuning/jobs"),
    *_management((*_GET, "DELETE"), "/v1/files/{file_id}"),
    *_management(
        _GET, "/v1/files/{file_id}/content", "/v1/batches/{batch_id}", "/v1/fine_tuning/jobs/{job_id}"
    ),
    *_management(_POST, "/v1/batches/{batch_id}/cancel", "/v1/fine_tuning/jobs/{job_id}/cancel"),
    *_management(_GET, "/v1/fine_tuning/jobs/{job_id}/events", "/v1/fine_tuning/jobs/{job_id}/checkpoints"),
)

ROWS: Final[tuple[Route, ...]] = (*_READS, *_WORK, *_MANAGEMENT)
