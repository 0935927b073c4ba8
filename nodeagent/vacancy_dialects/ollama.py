"""Ollama's routes, of releases 0.14 to 0.33 (server/routes.go). Classes and reasons: docs/routes.md.

HEAD stands only where Ollama serves it: gin answers HEAD of another GET route with 405.
"""

from __future__ import annotations

from typing import Final

from vacancy_dialects.routes import BodyRule, BodyShape, EndMark, QueryRule, Route, RouteClass
from vacancy_dialects.rows import POST, Rows

_GET: Final = ("GET",)
_ITS: Final = Rows(reads=_GET, read_query=QueryRule.DROP)
_HEAD_TOO: Final = Rows(read_query=QueryRule.DROP)

_READS: Final = (
    *_HEAD_TOO.read("/", "/api/version", "/api/tags"),
    *_ITS.read("/v1/models"),
    # For a name of the cloud, this one and the next go to ollama.com, signed with the owner's key.
    Route(
        methods=_GET,
        path="/v1/models/{model}",
        cls=RouteClass.PASS_THROUGH,
        query=QueryRule.DROP,
        model_in_path=True,
    ),
    Route(
        methods=POST,
        path="/api/show",
        cls=RouteClass.PASS_THROUGH,
        shape=BodyShape.JSON,
        body=BodyRule.OLLAMA_SHOW,
        query=QueryRule.DROP,
        judged_read=True,
    ),
)

_WORK: Final = (
    *_ITS.work("/api/generate", body=BodyRule.OLLAMA_GENERATE, end=EndMark.DONE),
    *_ITS.work("/api/chat", body=BodyRule.OLLAMA_CHAT, end=EndMark.DONE),
    *_ITS.work("/api/embed", "/api/embeddings", body=BodyRule.OLLAMA),
    *_ITS.work("/v1/chat/completions", "/v1/completions", body=BodyRule.OLLAMA_V1, end=EndMark.CHAT),
    *_ITS.work("/v1/embeddings", body=BodyRule.OLLAMA_V1),
    *_ITS.work("/v1/responses", body=BodyRule.OLLAMA_V1, end=EndMark.RESPONSES, background_refused=True),
    *_ITS.work("/v1/messages", body=BodyRule.OLLAMA_V1, end=EndMark.MESSAGES),
    # Of 0.15 to 0.32. Both take JSON there, edits too.
    *_ITS.work("/v1/images/generations", "/v1/images/edits", body=BodyRule.OLLAMA_V1, end=EndMark.IMAGE),
    # Go's FormValue("model") prefers the query string to the form.
    *_ITS.form("/v1/audio/transcriptions", body=BodyRule.OLLAMA_V1, end=EndMark.TRANSCRIPT),
)

_MANAGEMENT: Final = (
    # Which models the owner has loaded and, by their time of unloading, when he last used them.
    *_ITS.management(_GET, "/api/ps"),
    *_ITS.management(POST, "/api/pull", "/api/push", "/api/create", "/api/copy"),
    *_ITS.management(("DELETE",), "/api/delete"),
    *_ITS.management(("HEAD", "POST"), "/api/blobs/{digest}"),
    # The owner's identity at ollama.com, and calls that are paid for in his name.
    *_ITS.management(POST, "/api/me", "/api/signout"),
    *_ITS.management(("DELETE",), "/api/user/keys/{encoded_key}"),
    *_ITS.management(POST, "/api/experimental/web_search", "/api/experimental/web_fetch"),
    # Of 0.15 to 0.17: which model a name stands for.
    *_ITS.management(("GET", "POST", "DELETE"), "/api/experimental/aliases"),
)

ROWS: Final[tuple[Route, ...]] = (*_READS, *_WORK, *_MANAGEMENT)
