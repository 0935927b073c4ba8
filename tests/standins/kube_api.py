"""A stand-in for the Kubernetes API server, on a real socket: objects, list, watch, server-side apply.

It answers as 1.36 does in what an agent's membership rests on: a status apply creates nothing, an apply of
another object does; a watch sends what came after its resourceVersion; errors are Status documents. It keeps
every request, and can be told to break: to refuse, to hang, to go away and to come back on the same port.
"""

from __future__ import annotations

import asyncio
import copy
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from aiohttp import web

from standins.agents import free_port

if TYPE_CHECKING:
    from collections.abc import Callable

Document = dict[str, Any]
TOKEN = "the-token"


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    body: Document | None
    token: str


@dataclass
class KubeApi:
    """Use it as a context; `url` is where it listens."""

    token: str = TOKEN
    port: int = field(default_factory=free_port)
    asked: list[Asked] = field(default_factory=list)
    refuse: Callable[[Asked], web.StreamResponse | None] = lambda _asked: None
    hanging: bool = False
    """Requests are taken and never answered, as behind a network that drops packets."""
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._objects: dict[tuple[str, str], Document] = {}
        self._events: list[tuple[int, str, Document]] = []
        self._version = 100
        self._news = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._open: list[object] = []
        self._half_open: list[object] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        app = web.Application(client_max_size=4 << 20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.0, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            self._tell_watches()
            await runner.cleanup()

    # What stands in it.

    def put(self, collection: str, found: Document) -> Document:
        """Create or replace an object; returns it as it is now."""
        key = (collection, found["metadata"]["name"])
        known = self._objects.get(key)
        self._version += 1
        metadata = {"uid": f"uid-{self._version}", **(known or {}).get("metadata", {}), **found["metadata"]}
        now = {**found, "metadata": {**metadata, "resourceVersion": str(self._version)}}
        self._objects[key] = now
        self._event("MODIFIED" if known else "ADDED", now, collection)
        return now

    def delete(self, collection: str, name: str) -> None:
        gone = self._objects.pop((collection, name))
        self._version += 1
        gone = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self._version)}}
        self._event("DELETED", gone, collection)

    def get(self, collection: str, name: str) -> Document | None:
        return self._objects.get((collection, name))

    def of(self, method: str, part: str = "") -> list[Asked]:
        """Requests of a method whose path holds this."""
        return [one for one in self.asked if one.method == method and part in one.path]

    def compact(self) -> None:
        """Forget what happened: a watch from before gets a 410."""
        self._events.clear()
        self._compacted = self._version

    _compacted = 0

    def half_open(self) -> None:
        """Nothing comes through the connections there are, as after a sleep; new ones are as good as ever."""
        self._half_open = list(self._open)

    # How it answers.

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        asked = Asked(
            request.method,
            request.path,
            dict(request.query),
            json.loads(body) if body else None,
            request.headers.get("Authorization", "").removeprefix("Bearer "),
        )
        self.asked.append(asked)
        if self.hanging or request.transport in self._half_open:
            await asyncio.sleep(3600)
        self._open.append(request.transport)
        refusal = self.refuse(asked)
        if refusal is not None:
            return refusal
        if asked.token != self.token:
            return status(401, "Unauthorized")
        if asked.method == "PATCH":
            return self._apply(asked)
        return await self._read(request, asked)

    async def _read(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        collection, _, name = asked.path.rpartition("/")
        found = self._objects.get((collection, name))
        if found is not None:
            return self._answer(found)
        if not any(asked.path.endswith(end) for end in ("configmaps", "lendinghosts", "leases", "secrets")):
            return status(404, f"{name} not found")
        selected = asked.query.get("fieldSelector", "").removeprefix("metadata.name=")
        if "watch" in asked.query:
            return await self._watch(request, asked.path, selected, asked.query)
        items = [
            one for (where, what), one in self._objects.items() if (where, what) == (asked.path, selected)
        ]
        return self._answer({"metadata": {"resourceVersion": str(self._version)}, "items": items})

    async def _watch(
        self, request: web.Request, collection: str, name: str, query: dict[str, str]
    ) -> web.StreamResponse:
        after = int(query["resourceVersion"])
        answer = web.StreamResponse(headers={"Content-Type": "application/json", **self.headers})
        answer.enable_chunked_encoding()
        await answer.prepare(request)
        if after < self._compacted:
            gone = {"kind": "Status", "code": 410, "message": "too old resource version"}
            await answer.write(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
            return answer
        try:
            async with asyncio.timeout(float(query["timeoutSeconds"])):
                while self._runner is not None:
                    for version, kind, found in list(self._events):
                        where, what = found["where"], found["object"]["metadata"]["name"]
                        if version > after and (where, what) == (collection, name):
                            after = version
                            event = {"type": kind, "object": found["object"]}
                            if request.transport not in self._half_open:
                                await answer.write(json.dumps(event).encode() + b"\n")
                    await self._news.wait()
        except (TimeoutError, ConnectionError):
            pass
        return answer

    def _apply(self, asked: Asked) -> web.StreamResponse:
        path, _, last = asked.path.rpartition("/")
        part = last if last == "status" else "spec"
        collection, _, name = (path if last == "status" else asked.path).rpartition("/")
        found = self._objects.get((collection, name))
        if found is None and last == "status":
            return status(404, f"{name} not found")
        assert asked.body is not None
        now = copy.deepcopy(found) if found else {"metadata": {"name": name}}
        if part == "status":
            now["status"] = _merged(now.get("status", {}), asked.body["status"])
        else:
            now[part] = {**now.get(part, {}), **asked.body[part]}
        return self._answer(now if now == found else self.put(collection, now))

    def _answer(self, document: Document) -> web.StreamResponse:
        return web.json_response(document, headers=self.headers)

    def _event(self, kind: str, found: Document, collection: str) -> None:
        self._events.append((self._version, kind, {"where": collection, "object": found}))
        self._tell_watches()

    def _tell_watches(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


def status(code: int, message: str, **headers: str) -> web.Response:
    """A refusal as the API server writes it."""
    document = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}
    return web.json_response(
        document, status=code, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


def _merged(known: Document, applied: Document) -> Document:
    """Server-side apply of a status: conditions are a map by type, everything else is replaced."""
    conditions = {one["type"]: one for one in known.get("conditions", [])}
    conditions |= {one["type"]: one for one in applied.get("conditions", [])}
    return {**known, **applied, "conditions": list(conditions.values())}
