"""The agent's API on aiohttp: status, health, metrics, switches.

`/healthz` and a bare `/readyz` are public, status and metrics need the scope `read`, changes need `admin`.
Tokens are the proxies' own table; scopes do not contain one another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

from vacancy_agent.admin import diagnostics, metrics, reach, report, switches
from vacancy_agent.core.job import JobId, Phase
from vacancy_agent.core.rfc3339 import rfc3339
from vacancy_agent.store.errors import StoreError
from vacancy_api.reasons import Reason
from vacancy_edge import Scope
from vacancy_edge.this_machine import from_this_machine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from vacancy_agent.admin.running import Running

MAX_BODY = 64 << 10
NO_STORE = {"Cache-Control": "no-store"}


def make_app(agent: Running) -> web.Application:
    """The application; the caller binds it."""
    api = Api(agent)
    app = web.Application(client_max_size=MAX_BODY, middlewares=[errors_as_json])
    app.router.add_get("/healthz", api.healthz)
    app.router.add_get("/readyz", api.readyz)
    app.router.add_get("/status", api.needing(Scope.READ, api.status))
    app.router.add_get("/metrics", api.needing(Scope.READ, api.metrics))
    app.router.add_post("/admin/pause", api.needing(Scope.ADMIN, api.pause))
    app.router.add_post("/admin/resume", api.needing(Scope.ADMIN, api.resume))
    app.router.add_post("/admin/lending", api.needing(Scope.ADMIN, api.lending))
    app.router.add_post("/admin/resources/{name}", api.needing(Scope.ADMIN, api.resource))
    app.router.add_post("/admin/debug", api.needing(Scope.ADMIN, api.debug))
    app.router.add_get("/admin/diagnostics", api.needing(Scope.ADMIN, api.diagnostics))
    app.router.add_get("/admin/holds", api.needing(Scope.ADMIN, api.holds))
    app.router.add_delete("/admin/holds/{id}", api.needing(Scope.ADMIN, api.release))
    return app


@web.middleware
async def errors_as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Give every error the one shape; aiohttp's own are plain text."""
    try:
        return await handler(request)
    except web.HTTPMethodNotAllowed as error:
        allowed = ", ".join(sorted(error.allowed_methods))
        message = f"{request.path} does not take {request.method}; it takes {allowed}"
        return problem(error.status, Reason.BAD_REQUEST.value, message, {"Allow": allowed})
    except web.HTTPNotFound as error:
        known = ", ".join(sorted({r.canonical for r in request.app.router.resources()}))
        message = f"there is no {request.path} here; this is a vacancy agent's API: {known}"
        return problem(error.status, Reason.BAD_REQUEST.value, message)
    except web.HTTPRequestEntityTooLarge as error:
        message = f"the body is larger than {MAX_BODY >> 10} KiB"
        return problem(error.status, Reason.BODY_TOO_LARGE.value, message)
    except web.HTTPException as error:
        message = f"{request.method} {request.path}: {error.reason}"
        return problem(error.status, Reason.BAD_REQUEST.value, message)


def problem(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    """An error in the shape of every refusal."""
    error: dict[str, Any] = {
        "message": message,
        "type": "no_vacancy",
        "code": code,
        "param": None,
        "detail": {},
    }
    return web.Response(
        status=status,
        body=orjson.dumps({"error": error}),
        content_type="application/json",
        headers=NO_STORE | (headers or {}),
    )


def answer(data: object, status: int = 200) -> web.Response:
    """`data` as JSON."""
    return web.Response(
        status=status, body=orjson.dumps(data), content_type="application/json", headers=NO_STORE
    )


class Api:
    """The handlers."""

    def __init__(self, agent: Running) -> None:
        self._agent = agent

    def needing(
        self, scope: Scope, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """`handler`, behind a check of the scope."""

        async def guarded(request: web.Request) -> web.StreamResponse:
            if self._may(request, scope):
                self._agent.host.auth.allowed[scope.value] += 1
                return await handler(request)
            self._agent.host.auth.denied[scope.value] += 1
            wanted = (
                f"This needs a token with the scope {scope.value}: send it as `Authorization: Bearer TOKEN`."
            )
            return problem(
                401, Reason.UNAUTHORIZED.value, wanted, {"WWW-Authenticate": 'Bearer realm="vacancy"'}
            )

        return guarded

    async def healthz(self, _request: web.Request) -> web.Response:
        """The process lives."""
        return answer({"alive": True})

    async def readyz(self, request: web.Request) -> web.Response:
        """Whether it can do its work; why not only for readers."""
        missing = self._agent.ready()
        document: dict[str, Any] = {"ready": not missing}
        if self._may(request, Scope.READ):
            document["missing"] = missing
        return answer(document, 503 if missing else 200)

    async def status(self, _request: web.Request) -> web.Response:
        """The whole report."""
        unreachable = await reach.unreachable(self._agent.host.board.settings.upstreams)
        return answer(report.document(self._agent, unreachable))

    async def metrics(self, _request: web.Request) -> web.Response:
        """Prometheus text."""
        body, content_type = metrics.scrape(self._agent)
        return web.Response(body=body, headers={"Content-Type": content_type} | NO_STORE)

    async def pause(self, request: web.Request) -> web.Response:
        """Stop lending at this machine."""
        return await self._switch(request, switches.pause)

    async def resume(self, request: web.Request) -> web.Response:
        """End such a pause."""
        return await self._switch(request, switches.resume)

    async def lending(self, request: web.Request) -> web.Response:
        """The switch for everything."""
        return await self._switch(request, switches.lending)

    async def resource(self, request: web.Request) -> web.Response:
        """The switch of one resource."""
        return await self._switch(request, switches.resource)

    async def debug(self, request: web.Request) -> web.Response:
        """Tell every request for a while."""
        return await self._switch(request, switches.debug)

    async def diagnostics(self, _request: web.Request) -> web.Response:
        """One archive for whoever is asked for help."""
        unreachable = await reach.unreachable(self._agent.host.board.settings.upstreams)
        body = diagnostics.archive(self._agent, unreachable)
        name = f'attachment; filename="{diagnostics.FOLDER}.tar"'
        headers = {"Content-Type": diagnostics.CONTENT_TYPE, "Content-Disposition": name} | NO_STORE
        return web.Response(body=body, headers=headers)

    async def holds(self, _request: web.Request) -> web.Response:
        """Work whose end is not proved."""
        return answer(report.holds(self._agent))

    async def release(self, request: web.Request) -> web.Response:
        """Free one of them."""
        text = request.match_info["id"]
        if not (text.isascii() and text.isdigit() and len(text) <= 20):  # noqa: PLR2004 - digits of 64 bits
            message = f"{text!r} is not the number of a hold: `vacancy holds` lists them (GET /admin/holds)"
            return problem(400, Reason.BAD_REQUEST.value, message)
        job = self._agent.host.ledger.job(JobId(int(text)))
        if job is None:
            return problem(404, Reason.BAD_REQUEST.value, f"there is no hold {text}")
        if job.phase is not Phase.HELD:
            return problem(409, Reason.BAD_REQUEST.value, f"job {text} is {job.phase.value}, not held")
        self._agent.release_hold(job.id)
        return answer({"released": text})

    async def _switch(
        self,
        request: web.Request,
        change: Callable[[Running, dict[str, Any], str], Awaitable[None]],
    ) -> web.Response:
        agent = self._agent
        try:
            await change(agent, await _json_of(request), request.match_info.get("name", ""))
        except switches.WrongInputError as error:
            return problem(error.status, Reason.BAD_REQUEST.value, str(error))
        except StoreError as error:
            return problem(500, "not_saved", f"in force now, but not over a restart: {error}")
        board, wall = agent.host.board, agent.host.clock.wall()
        enabled = {name: board.resource_enabled(name) for name in board.settings.resources}
        until = None if agent.debug.until is None else rfc3339(agent.debug.until)
        return answer({"lending": report.lending(board, wall), "resources": enabled, "debugUntil": until})

    def _may(self, request: web.Request, scope: Scope) -> bool:
        authorization, key = request.headers.get("Authorization"), request.headers.get("X-Api-Key")
        principal = self._agent.host.tokens.check(_raw(authorization), _raw(key))
        if principal is not None:
            return scope in principal.scopes
        nothing = authorization is None and key is None
        return nothing and self._agent.host.access.trust_loopback and _is_this_machine(request)


async def _json_of(request: web.Request) -> dict[str, Any]:
    raw = await request.read()
    try:
        parsed = orjson.loads(raw or b"{}")
    except orjson.JSONDecodeError as error:
        raise switches.WrongInputError(f"the body is not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise switches.WrongInputError("the body must be a JSON object")
    return parsed


def _raw(value: str | None) -> bytes | None:
    return None if value is None else value.encode("utf-8", "surrogateescape")


def _is_this_machine(request: web.Request) -> bool:
    headers = request.headers
    host, origin = headers.get("Host"), headers.get("Origin")
    return from_this_machine(request.remote, host, origin, tls=request.secure)
