"""What a borrower may reach, written down a second time: plain lists, not the product's tables.

A fuzzed request that reaches an upstream is compared with these. `{}` stands for one segment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Open:
    """One dialect: paths of work by the shape of their body, reads, sockets; and what must not pass."""

    json: tuple[str, ...] = ()
    form: tuple[str, ...] = ()
    graph: tuple[str, ...] = ()
    upload: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    """POST with a model in its JSON body, and yet no work."""
    reads: tuple[str, ...] = ()
    bare_reads: tuple[str, ...] = ()
    """Reads that have no query when they reach the server."""
    sockets: tuple[str, ...] = ()
    work_sockets: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    """Paths of the server that no borrower reaches by any method; to aim at."""
    no_headers: tuple[str, ...] = ()
    no_relay_headers: tuple[str, ...] = ()
    get_only: bool = False
    """HEAD of a read is not served."""
    _cache: dict[tuple[str, str], str | None] = field(default_factory=dict, compare=False)

    def kind(self, method: str, path: str, websocket: bool) -> str | None:
        """What a request that reached the server is; None: it should not have."""
        if websocket:
            groups = (("socket", self.sockets), ("work_socket", self.work_sockets))
        elif method == "POST":
            groups = (
                ("json", self.json),
                ("form", self.form),
                ("graph", self.graph),
                ("upload", self.upload),
                ("shown", self.shown),
            )
        elif method in {"GET", "HEAD"}:
            groups = (("read", self.reads), ("bare_read", self.bare_reads))
        else:
            return None
        for kind, paths in groups:
            if any(_fits(pattern, path) for pattern in paths):
                return kind
        return None


def _fits(pattern: str, path: str) -> bool:
    if "{}" not in pattern:
        return pattern == path
    return re.fullmatch(re.escape(pattern).replace(r"\{\}", r"[^/?#]+"), path) is not None


def _twice(*paths: str) -> tuple[str, ...]:
    return (*paths, *("/api" + path for path in paths))


_SPEECH = ("/audio/speech", "/v1/audio/speech", "/tts")
_OPENAI_JSON = (
    "/v1/chat/completions", "/v1/chat/completions/batch", "/v1/completions", "/v1/responses", "/v1/messages",
    "/v1/embeddings", "/v2/embed", "/v1/score", "/score", "/v1/rerank", "/v2/rerank", "/rerank", "/pooling",
    "/classify", "/cohere/v2/chat", "/v1/systemone", "/generative_scoring", "/v1/messages/count_tokens",
    "/tokenize", "/detokenize", "/v1/audio/speech", "/v1/images/generations", "/v1/moderations",
    *(f"/v1/{what}/{how}"
      for what in ("chat/completions", "completions", "responses", "messages", "embeddings")
      for how in ("render", "derender")),
)  # fmt: skip
_LLAMA_JSON = (
    "/v1/chat/completions", "/chat/completions", "/v1/completions", "/completions", "/completion", "/infill",
    "/v1/responses", "/responses", "/v1/messages", "/v1/embeddings", "/embeddings", "/embedding",
    "/v1/rerank",
    "/rerank", "/v1/reranking", "/reranking", "/v1/systemone", "/tokenize", "/detokenize", "/apply-template",
    "/v1/chat/completions/input_tokens", "/chat/completions/input_tokens", "/v1/responses/input_tokens",
    "/responses/input_tokens", "/v1/messages/count_tokens",
)  # fmt: skip

DIALECTS = {
    "openai": Open(
        json=_OPENAI_JSON,
        form=(
            "/v1/audio/transcriptions", "/v1/audio/translations", "/v1/images/edits", "/v1/images/variations",
        ),
        bare_reads=("/health", "/v1/models", "/version", "/ping"),
        work_sockets=("/v1/realtime",),
        closed=(
            "/metrics", "/load", "/invocations", "/inference/v1/generate", "/v1/load_lora_adapter", "/sleep",
            "/wake_up", "/collective_rpc", "/pause", "/update_weights", "/v1/responses/resp_1", "/v1/files",
            "/v1/batches", "/docs", "/server_info", "/tokenizer_info", "/abort_requests",
        ),
        no_headers=("x-conversation-id", "x-amzn-sagemaker-adapter-identifier"),
        no_relay_headers=("x-vllm-priority",),
    ),
    "llamacpp": Open(
        json=_LLAMA_JSON,
        form=("/v1/audio/transcriptions", "/audio/transcriptions"),
        bare_reads=("/health", "/v1/health", "/v1/models", "/models"),
        closed=(
            "/slots", "/slots/0", "/metrics", "/props", "/lora-adapters", "/v1/stream", "/v1/streams/lookup",
            "/models/load", "/models/unload", "/models/sse", "/tools", "/cors-proxy",
            "/v1/chat/completions/control",
            "/", "/index.html",
        ),
        no_headers=("x-conversation-id",),
    ),
    "ollama": Open(
        json=(
            "/api/generate", "/api/chat", "/api/embed", "/api/embeddings", "/v1/chat/completions",
            "/v1/completions",
            "/v1/embeddings", "/v1/responses", "/v1/messages", "/v1/images/generations", "/v1/images/edits",
        ),
        form=("/v1/audio/transcriptions",),
        shown=("/api/show",),
        reads=(),
        bare_reads=("/", "/api/version", "/api/tags", "/v1/models", "/v1/models/{}"),
        closed=(
            "/api/ps", "/api/pull", "/api/push", "/api/create", "/api/copy", "/api/delete",
            "/api/blobs/sha256-1",
            "/api/me", "/api/signout", "/api/experimental/web_search", "/api/experimental/aliases",
            "/api/status",
            "/api/user/keys/a",
        ),
    ),
    "comfyui": Open(
        graph=_twice("/prompt"),
        upload=_twice("/upload/image", "/upload/mask"),
        reads=(
            *_twice("/prompt", "/history/{}", "/view", "/object_info", "/object_info/{}"),
            *_twice("/models", "/models/{}"),
            *_twice("/embeddings", "/features"),
            "/api/jobs/{}",
        ),
        sockets=_twice("/ws"),
        closed=(
            "/system_stats", "/queue", "/api/queue", "/interrupt", "/free", "/api/jobs", "/api/jobs/cancel",
            "/api/jobs/a/cancel", "/history", "/settings", "/users", "/userdata", "/userdata/a",
            "/v2/userdata",
            "/internal/logs", "/internal/folder_paths", "/api/assets", "/extensions", "/view_metadata/a", "/",
            "/v2/manager/reboot", "/manager/reboot", "/jobs/a", "/api/api/jobs",
        ),
        no_headers=("origin", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"),
    ),
    "chatterbox": Open(
        json=(*_SPEECH, *(path + "/stream" for path in _SPEECH)),
        form=(*(path + "/upload" for path in _SPEECH), *(path + "/stream/upload" for path in _SPEECH)),
        bare_reads=(
            "/health", "/v1/health", "/ping", "/models", "/v1/models", "/languages", "/v1/languages",
            "/voices",
            "/v1/voices", "/voice-library", "/voice_library", "/voices/all-names", "/v1/audio/voices",
            "/get_predefined_voices", "/api/model-info",
        ),
        closed=(
            "/status", "/v1/status", "/processing", "/history", "/stats", "/info", "/config", "/memory",
            "/memory/config", "/memory/reset", "/audio/speech/long", "/v1/audio/speech/long",
            "/audio/speech/long/bulk", "/audio/speech/long/1/retry", "/save_settings", "/api/unload",
            "/restart_server", "/api/ui/initial-data", "/upload_reference", "/outputs/a", "/docs",
        ),
    ),
}  # fmt: skip
