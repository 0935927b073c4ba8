"""ComfyUI's routes, as of 0.38 and back to 0.3.64. Classes and reasons: docs/routes.md.

The server answers each path of its own also below `/api`; what its source declares with `/api` in it, only as
written.
"""

from __future__ import annotations

from typing import Final

from vacancy_dialects.routes import WEBSOCKET, BodyShape, QueryRule, Route, RouteClass
from vacancy_dialects.rows import GET, POST, Rows

_STRIP: Final = frozenset(
    {b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest", b"sec-fetch-user"}
)
"""It refuses an Origin that is not its Host, and the Host it sees is its own, never the borrower's."""
_ITS: Final = Rows(read_query=QueryRule.KEEP, strip=_STRIP)


def _twice(*paths: str) -> tuple[str, ...]:
    return tuple(prefix + path for path in paths for prefix in ("", "/api"))


_SUBMIT: Final = tuple(
    Route(
        methods=POST,
        path=path,
        cls=RouteClass.WORK,
        shape=BodyShape.GRAPH,
        query=QueryRule.DROP,
        tracked=True,
        strip_headers=_STRIP,
    )
    for path in _twice("/prompt")
)

_UPLOADS: Final = tuple(
    Route(methods=POST, path=path, cls=RouteClass.WORK, query=QueryRule.DROP, strip_headers=_STRIP)
    for path in _twice("/upload/image", "/upload/mask")
)
"""No GPU, but the owner's disk. They end with their reply and name no model."""

_PROGRESS: Final = tuple(
    Route(
        methods=(WEBSOCKET,),
        path=path,
        cls=RouteClass.PASS_THROUGH,
        client_query="clientId",
        strip_headers=_STRIP,
    )
    for path in _twice("/ws")
)

_READS: Final = (
    *_ITS.read(*_twice("/prompt")),  # a count, without content
    *_ITS.read(*_twice("/history/{prompt_id}"), "/api/jobs/{job_id}", *_twice("/view")),
    *_ITS.read(*_twice("/object_info", "/object_info/{node}", "/models", "/models/{folder}")),
    *_ITS.read(*_twice("/embeddings", "/features")),
)

_MANAGEMENT: Final = (
    # What everybody does there, and how the server is set up.
    *_ITS.management(GET, *_twice("/system_stats")),
    *_ITS.management((*GET, "POST"), *_twice("/queue", "/history")),
    *_ITS.management(POST, *_twice("/interrupt", "/free")),
    *_ITS.management(GET, "/api/jobs"),
    *_ITS.management(POST, "/api/jobs/cancel", "/api/jobs/{job_id}/cancel"),
    # The owner's settings and files.
    *_ITS.management((*GET, "POST"), *_twice("/settings", "/settings/{id}", "/users")),
    *_ITS.management((*GET, "POST", "DELETE"), *_twice("/userdata", "/userdata/{file}")),
    *_ITS.management(POST, *_twice("/userdata/{file}/move/{dest}")),
    *_ITS.management(GET, *_twice("/v2/userdata")),
    *_ITS.management(GET, "/internal/logs", "/internal/logs/raw", "/internal/folder_paths"),
    *_ITS.management(GET, "/internal/files/{directory_type}"),
    *_ITS.management(("PATCH",), "/internal/logs/subscribe"),
    # The asset store.
    *_ITS.management((*GET, "POST", "PUT", "DELETE"), "/api/assets", "/api/assets/{id}"),
    *_ITS.management((*GET, "POST", "PUT", "DELETE"), "/api/assets/{id}/content", "/api/assets/{id}/tags"),
    *_ITS.management((*GET, "POST"), "/api/assets/from-hash", "/api/assets/hash/{hash}"),
    *_ITS.management(
        (*GET, "POST"), "/api/assets/seed", "/api/assets/seed/status", "/api/assets/seed/cancel"
    ),
    *_ITS.management((*GET, "POST"), "/api/assets/prune", "/api/tags", "/api/assets/tags/refine"),
)

ROWS: Final[tuple[Route, ...]] = (*_SUBMIT, *_UPLOADS, *_PROGRESS, *_READS, *_MANAGEMENT)
