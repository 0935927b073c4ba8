"""The agent's API on aiohttp's server: status, health, metrics, switches.

`/healthz` and a bare `/readyz` are public, status and metrics need the scope `read`, changes need `admin`.
Tokens are the proxies' own table; scopes do not contain one another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from aiohttp.web_response import Response

from vacancy_agent.admin import diagnostics, metrics, reach, report, switches
from vacancy_agent.admin.router import NO_STORE, Route, Router, answer, body_of, problem
from vacancy_agent.core.job import JobId, Phase
from vacancy_agent.core.rfc3339 import rfc3339
from vacancy_agent.store.errors import StoreError
from vacancy_api.reasons import Reason
from vacancy_edge import Scope
from vacancy_edge.this_machine import from_this_machine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp.web_request import BaseRequest

    from vacancy_agent.admin.router import Handler
    from vacancy_agent.admin.running import Running


def make_app(agent: Running) -> Router:
    """The application, which `aiohttp.web_server.Server` calls; the caller binds it."""
    api = Api(agent)
    read, admin = Scope.READ, Scope.ADMIN
    return Router(
        (
            Route("GET", "/healthz", api.healthz),
            Route("GET", "/readyz", api.readyz),
            Route("GET", "/status", api.needing(read, api.status)),
            Route("GET", "/metrics", api.needing(read, api.metrics)),
            Route("POST", "/admin/pause", api.needing(admin, api.switch(switches.pause))),
            Route("POST", "/admin/resume", api.needing(admin, api.switch(switches.resume))),
            Route("POST", "/admin/lending", api.needing(admin, api.switch(switches.lending))),
            Route("POST", "/admin/resources/{name}", api.needing(admin, api.switch(switches.resource))),
            Route("POST", "/admin/debug", api.needing(admin, api.switch(switches.debug))),
            Route("GET", "/admin/diagnostics", api.needing(admin, api.diagnostics)),
            Route("GET", "/admin/holds", api.needing(admin, api.holds)),
            Route("DELETE", "/admin/holds/{id}", api.needing(admin, api.release)),
        )
    )


class Api:
    """The handlers."""

    def __init__(self, agent: Running) -> None:
        self._agent = agent

    def needing(self, scope: Scope, handler: Handler) -> Handler:
        """`handler`, behind a check of the scope."""

        async def guarded(request: BaseRequest, name: str) -> Response:
            if self._may(request, scope):
                self._agent.host.auth.allowed[scope.value] += 1
                return await handler(request, name)
            self._agent.host.auth.denied[scope.value] += 1
            wanted = (
                f"This needs a token with the scope {scope.value}: send it as `Authorization: Bearer TOKEN`."
            )
            return problem(
                401, Reason.UNAUTHORIZED.value, wanted, {"WWW-Authenticate": 'Bearer realm="vacancy"'}
            )

        return guarded

    async def healthz(self, _request: BaseRequest, _name: str) -> Response:
        """The process lives."""
        return answer({"alive": True})

    async def readyz(self, request: BaseRequest, _name: str) -> Response:
        """Whether it can do its work; why not only for readers."""
        missing = self._agent.ready()
        document: dict[str, Any] = {"ready": not missing}
        if self._may(request, Scope.READ):
            document["missing"] = missing
        return answer(document, 503 if missing else 200)

    async def status(self, _request: BaseRequest, _name: str) -> Response:
        """The whole report."""
        unreachable = await reach.unreachable(self._agent.host.board.settings.upstreams)
        return answer(report.document(self._agent, unreachable))

    async def metrics(self, _request: BaseRequest, _name: str) -> Response:
        """Prometheus text."""
        body, content_type = metrics.scrape(self._agent)
        return Response(body=body, headers={"Content-Type": content_type} | NO_STORE)

    async def diagnostics(self, _request: BaseRequest, _name: str) -> Response:
        """One archive for whoever is asked for help."""
        unreachable = await reach.unreachable(self._agent.host.board.settings.upstreams)
        body = diagnostics.archive(self._agent, unreachable)
        name = f'attachment; filename="{diagnostics.FOLDER}.tar"'
        headers = {"Content-Type": diagnostics.CONTENT_TYPE, "Content-Disposition": name} | NO_STORE
        return Response(body=body, headers=headers)

    async def holds(self, _request: BaseRequest, _name: str) -> Response:
        """Work whose end is not proved."""
        return answer(report.holds(self._agent))

    async def release(self, _request: BaseRequest, text: str) -> Response:
        """Free one of them."""
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

    def switch(self, change: Callable[[Running, dict[str, Any], str], Awaitable[None]]) -> Handler:
        """A handler that changes something, and answers with how the switches stand."""

        async def switched(request: BaseRequest, name: str) -> Response:
            return await self._switch(request, name, change)

        return switched

    async def _switch(
        self,
        request: BaseRequest,
        name: str,
        change: Callable[[Running, dict[str, Any], str], Awaitable[None]],
    ) -> Response:
        agent = self._agent
        try:
            await change(agent, await _json_of(request), name)
        except switches.WrongInputError as error:
            return problem(error.status, Reason.BAD_REQUEST.value, str(error))
        except StoreError as error:
            return problem(500, "not_saved", f"in force now, but not over a restart: {error}")
        board, wall = agent.host.board, agent.host.clock.wall()
        enabled = {one: board.resource_enabled(one) for one in board.settings.resources}
        until = None if agent.debug.until is None else rfc3339(agent.debug.until)
        return answer({"lending": report.lending(board, wall), "resources": enabled, "debugUntil": until})

    def _may(self, request: BaseRequest, scope: Scope) -> bool:
        authorization, key = request.headers.get("Authorization"), request.headers.get("X-Api-Key")
        principal = self._agent.host.tokens.check(_raw(authorization), _raw(key))
        if principal is not None:
            return scope in principal.scopes
        nothing = authorization is None and key is None
        return nothing and self._agent.host.access.trust_loopback and _is_this_machine(request)


async def _json_of(request: BaseRequest) -> dict[str, Any]:
    raw = await body_of(request)
    try:
        parsed = orjson.loads(raw or b"{}")
    except orjson.JSONDecodeError as error:
        raise switches.WrongInputError(f"the body is not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise switches.WrongInputError("the body must be a JSON object")
    return parsed


def _raw(value: str | None) -> bytes | None:
    return None if value is None else value.encode("utf-8", "surrogateescape")


def _is_this_machine(request: BaseRequest) -> bool:
    headers = request.headers
    host, origin = headers.get("Host"), headers.get("Origin")
    return from_this_machine(request.remote, host, origin, tls=request.secure)
