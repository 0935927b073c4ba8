"""The API's routes as a table, on aiohttp's server alone, and every answer of it in one shape.

aiohttp's own application layer brings static files, sockets and a router for any path: 1.5 MiB of an idle
agent, for a dozen routes of which two have a name in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import orjson
from aiohttp.web_response import Response

from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from aiohttp.web_request import BaseRequest

    Handler = Callable[[BaseRequest, str], Awaitable[Response]]
    """Given the request and what stands for `{...}` in its path, decoded; empty where nothing does."""

MAX_BODY = 64 << 10
NO_STORE = {"Cache-Control": "no-store"}


class Route(NamedTuple):
    """One row. A path that ends in `{...}` stands for any one segment there."""

    method: str
    path: str
    handler: Handler


class BodyTooLargeError(Exception):
    """The body is larger than `MAX_BODY`."""


class Router:
    """What aiohttp's server calls with each request."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._methods: dict[str, dict[str, Handler]] = {}
        for route in routes:
            self._methods.setdefault(route.path, {})[route.method] = route.handler
        self._open = {path.rpartition("/")[0]: path for path in self._methods if path.endswith("}")}

    async def __call__(self, request: BaseRequest) -> Response:
        """Answer one request."""
        path, name = self._find(request.rel_url.raw_path)
        if path is None:
            known = ", ".join(sorted(self._methods))
            message = f"there is no {request.path} here; this is a vacancy agent's API: {known}"
            return problem(404, Reason.BAD_REQUEST.value, message)
        methods = self._methods[path]
        handler = methods.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            allowed = ", ".join(sorted(methods))
            message = f"{request.path} does not take {request.method}; it takes {allowed}"
            return problem(405, Reason.BAD_REQUEST.value, message, {"Allow": allowed})
        try:
            return await handler(request, name)
        except BodyTooLargeError:
            message = f"the body is larger than {MAX_BODY >> 10} KiB"
            return problem(413, Reason.BODY_TOO_LARGE.value, message)

    def _find(self, raw: str) -> tuple[str | None, str]:
        before, _, last = raw.rpartition("/")
        row = self._open.get(before)
        if row is not None and last:
            return row, unquote(last, errors="surrogateescape")
        return (raw, "") if raw in self._methods and not raw.endswith("}") else (None, "")


async def body_of(request: BaseRequest) -> bytes:
    """The request's whole body.

    Raises:
        BodyTooLargeError: there is more of it than `MAX_BODY`.
    """
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > MAX_BODY:
            raise BodyTooLargeError
    return bytes(body)


def answer(data: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """`data` as JSON."""
    return Response(
        status=status,
        body=orjson.dumps(data),
        content_type="application/json",
        headers=NO_STORE | (headers or {}),
    )


def problem(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Response:
    """An error in the shape of every refusal."""
    error: dict[str, Any] = {
        "message": message.encode("utf-8", "backslashreplace").decode(),
        "type": "no_vacancy",
        "code": code,
        "param": None,
        "detail": {},
    }
    return answer({"error": error}, status, headers)
