"""llama-server's routes, as of b11434 (tools/server/server.cpp). Classes and reasons: docs/routes.md."""

from __future__ import annotations

from typing import Final

from vacancy_dialects.routes import BodyShape, EndMark, QueryRule, ReplyRule, Route, RouteClass

_STRIP: Final = frozenset({b"x-conversation-id"})
"""Makes a stream outlive its connection (run on b11434): a borrower who left would keep the slot."""


def _work(*paths: str, end: EndMark = EndMark.UNKNOWN, background_refused: bool = False) -> tuple[Route, ...]:
    return tuple(
        Route(
            methods=("POST",),
            path=path,
            cls=RouteClass.WORK,
            shape=BodyShape.JSON,
            query=QueryRule.DROP,
            end=end,
            background_refused=background_refused,
            strip_headers=_STRIP,
        )
        for path in paths
    )


def _form(*paths: str) -> tuple[Route, ...]:
    return tuple(
        Route(
            methods=("POST",),
            path=path,
            cls=RouteClass.WORK,
            shape=BodyShape.MULTIPART,
            query=QueryRule.REFUSE,
            end=EndMark.TRANSCRIPT,
            strip_headers=_STRIP,
        )
        for path in paths
    )


def _read(*paths: str, reply: ReplyRule = ReplyRule.AS_IS) -> tuple[Route, ...]:
    return tuple(
        Route(
            methods=("GET", "HEAD"),
            path=path,
            cls=RouteClass.PASS_THROUGH,
            query=QueryRule.MANAGEMENT,
            reply=reply,
            strip_headers=_STRIP,
        )
        for path in paths
    )


def _management(path: str, *methods: str) -> Route:
    return Route(methods=methods, path=path, cls=RouteClass.MANAGEMENT, strip_headers=_STRIP)


ROWS: Final[tuple[Route, ...]] = (
    *_read("/health", "/v1/health"),
    *_read("/v1/models", "/models", reply=ReplyRule.LLAMA_MODEL_LIST),
    *_work("/v1/chat/completions", "/chat/completions", "/v1/completions", end=EndMark.CHAT),
    *_work("/completion", "/completions", "/infill", end=EndMark.NATIVE),
    # "background": true is answered synchronously there (run); refused all the same, one rule for every
    # server.
    *_work("/v1/responses", "/responses", end=EndMark.RESPONSES, background_refused=True),
    *_work("/v1/messages", end=EndMark.MESSAGES),
    *_work("/v1/embeddings", "/embeddings", "/embedding"),
    *_work("/v1/rerank", "/rerank", "/v1/reranking", "/reranking", "/v1/systemone"),
    *_form("/v1/audio/transcriptions", "/audio/transcriptions"),
    # On the CPU only, but they wait for a sleeping model and wake it; a router loads the model they name.
    *_work("/tokenize", "/detokenize", "/apply-template"),
    *_work("/v1/chat/completions/input_tokens", "/chat/completions/input_tokens"),
    *_work("/v1/responses/input_tokens", "/responses/input_tokens", "/v1/messages/count_tokens"),
    # What the owner is doing, and the switches.
    _management("/v1/chat/completions/control", "POST"),
    _management("/slots", "GET", "HEAD"),
    _management("/slots/{id_slot}", "POST"),
    _management("/metrics", "GET", "HEAD"),
    _management("/props", "GET", "HEAD", "POST"),
    _management("/lora-adapters", "GET", "HEAD", "POST"),
    # A conversation id is a bearer secret, and resumed work outlives the request.
    _management("/v1/stream", "GET", "HEAD", "DELETE"),
    _management("/v1/streams/lookup", "POST"),
    # Router mode.
    _management("/models/load", "POST"),
    _management("/models/unload", "POST"),
    _management("/models", "POST", "DELETE"),
    _management("/models/sse", "GET", "HEAD"),
    # Built-in agent tools (a shell among them) and an open proxy.
    _management("/tools", "GET", "HEAD", "POST"),
    _management("/cors-proxy", "GET", "HEAD", "POST"),
)
