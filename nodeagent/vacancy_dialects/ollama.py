"""Ollama's routes, of releases 0.14 to 0.33 (server/routes.go). Classes and reasons: docs/routes.md.

HEAD stands only where Ollama serves it: gin answers HEAD of another GET route with 405.
"""

from __future__ import annotations

from typing import Final

from vacancy_dialects.routes import BodyRule, BodyShape, EndMark, QueryRule, Route, RouteClass

_GET: Final = ("GET",)
_GET_HEAD: Final = ("GET", "HEAD")
_POST: Final = ("POST",)


def _work(
    *paths: str, body: BodyRule, end: EndMark = EndMark.UNKNOWN, background_refused: bool = False
) -> tuple[Route, ...]:
    return tuple(
        Route(
            methods=_POST,
            path=path,
            cls=RouteClass.WORK,
            shape=BodyShape.JSON,
            body=body,
            query=QueryRule.DROP,
            end=end,
            background_refused=background_refused,
        )
        for path in paths
    )


def _read(methods: tuple[str, ...], *paths: str) -> tuple[Route, ...]:
    return tuple(
        Route(methods=methods, path=path, cls=RouteClass.PASS_THROUGH, query=QueryRule.DROP) for path in paths
    )


def _management(methods: tuple[str, ...], *paths: str) -> tuple[Route, ...]:
    return tuple(Route(methods=methods, path=path, cls=RouteClass.MANAGEMENT) for path in paths)


_READS: Final = (
    *_read(_GET_HEAD, "/", "/api/version", "/api/tags"),
    *_read(_GET, "/v1/models"),
    # For a name of the cloud, this one and the next go to ollama.com, signed with the owner's key.
    Route(
        methods=_GET,
        path="/v1/models/{model}",
        cls=RouteClass.PASS_THROUGH,
        query=QueryRule.DROP,
        model_in_path=True,
    ),
    Route(
        methods=_POST,
        path="/api/show",
        cls=RouteClass.PASS_THROUGH,
        shape=BodyShape.JSON,
        body=BodyRule.OLLAMA_SHOW,
        query=QueryRule.DROP,
        judged_read=True,
    ),
)

_WORK: Final = (
    *_work("/api/generate", body=BodyRule.OLLAMA_GENERATE, end=EndMark.DONE),
    *_work("/api/chat", body=BodyRule.OLLAMA_CHAT, end=EndMark.DONE),
    *_work("/api/embed", "/api/embeddings", body=BodyRule.OLLAMA),
    *_work("/v1/chat/completions", "/v1/completions", body=BodyRule.OLLAMA_V1, end=EndMark.CHAT),
    *_work("/v1/embeddings", body=BodyRule.OLLAMA_V1),
    *_work("/v1/responses", body=BodyRule.OLLAMA_V1, end=EndMark.RESPONSES, background_refused=True),
    *_work("/v1/messages", body=BodyRule.OLLAMA_V1, end=EndMark.MESSAGES),
    # Of 0.15 to 0.32. Both take JSON there, edits too.
    *_work("/v1/images/generations", "/v1/images/edits", body=BodyRule.OLLAMA_V1, end=EndMark.IMAGE),
    # Go's FormValue("model") prefers the query string to the form.
    Route(
        methods=_POST,
        path="/v1/audio/transcriptions",
        cls=RouteClass.WORK,
        shape=BodyShape.MULTIPART,
        body=BodyRule.OLLAMA_V1,
        query=QueryRule.REFUSE,
        end=EndMark.TRANSCRIPT,
    ),
)

_MANAGEMENT: Final = (
    # Which models the owner has loaded and, by their time of unloading, when he last used them.
    *_management(_GET, "/api/ps"),
    *_management(_POST, "/api/pull", "/api/push", "/api/create", "/api/copy"),
    *_management(("DELETE",), "/api/delete"),
    *_management(("HEAD", "POST"), "/api/blobs/{digest}"),
    # The owner's identity at ollama.com, and calls that are paid for in his name.
    *_management(_POST, "/api/me", "/api/signout"),
    *_management(("DELETE",), "/api/user/keys/{encoded_key}"),
    *_management(_POST, "/api/experimental/web_search", "/api/experimental/web_fetch"),
    # Of 0.15 to 0.17: which model a name stands for.
    *_management(("GET", "POST", "DELETE"), "/api/experimental/aliases"),
)

ROWS: Final[tuple[Route, ...]] = (*_READS, *_WORK, *_MANAGEMENT)
