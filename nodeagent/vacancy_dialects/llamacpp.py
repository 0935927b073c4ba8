"""llama-server's routes, as of b11434 (tools/server/server.cpp). Classes and reasons: docs/routes.md."""

from __future__ import annotations

from typing import Final

from vacancy_dialects.routes import EndMark, ReplyRule, Route
from vacancy_dialects.rows import GET, POST, Rows

_STRIP: Final = frozenset({b"x-conversation-id"})
"""Makes a stream outlive its connection (run on b11434): a borrower who left would keep the slot."""
_ITS: Final = Rows(strip=_STRIP)

ROWS: Final[tuple[Route, ...]] = (
    *_ITS.read("/health", "/v1/health"),
    *_ITS.read("/v1/models", "/models", reply=ReplyRule.LLAMA_MODEL_LIST),
    *_ITS.work("/v1/chat/completions", "/chat/completions", "/v1/completions", end=EndMark.CHAT),
    *_ITS.work("/completion", "/completions", "/infill", end=EndMark.NATIVE),
    # "background": true is answered synchronously there (run); refused all the same, one rule for every
    # server.
    *_ITS.work("/v1/responses", "/responses", end=EndMark.RESPONSES, background_refused=True),
    *_ITS.work("/v1/messages", end=EndMark.MESSAGES),
    *_ITS.work("/v1/embeddings", "/embeddings", "/embedding"),
    *_ITS.work("/v1/rerank", "/rerank", "/v1/reranking", "/reranking", "/v1/systemone"),
    *_ITS.form("/v1/audio/transcriptions", "/audio/transcriptions", end=EndMark.TRANSCRIPT),
    # On the CPU only, but they wait for a sleeping model and wake it; a router loads the model they name.
    *_ITS.work("/tokenize", "/detokenize", "/apply-template"),
    *_ITS.work("/v1/chat/completions/input_tokens", "/chat/completions/input_tokens"),
    *_ITS.work("/v1/responses/input_tokens", "/responses/input_tokens", "/v1/messages/count_tokens"),
    # What the owner is doing, and the switches.
    *_ITS.management(POST, "/v1/chat/completions/control"),
    *_ITS.management(GET, "/slots"),
    *_ITS.management(POST, "/slots/{id_slot}"),
    *_ITS.management(GET, "/metrics"),
    *_ITS.management((*GET, "POST"), "/props"),
    *_ITS.management((*GET, "POST"), "/lora-adapters"),
    # A conversation id is a bearer secret, and resumed work outlives the request.
    *_ITS.management((*GET, "DELETE"), "/v1/stream"),
    *_ITS.management(POST, "/v1/streams/lookup"),
    # Router mode.
    *_ITS.management(POST, "/models/load"),
    *_ITS.management(POST, "/models/unload"),
    *_ITS.management(("POST", "DELETE"), "/models"),
    *_ITS.management(GET, "/models/sse"),
    # Built-in agent tools (a shell among them) and an open proxy.
    *_ITS.management((*GET, "POST"), "/tools"),
    *_ITS.management((*GET, "POST"), "/cors-proxy"),
)
