"""The few calls that the operator makes to the API server, on the transport of `kubernetes.aio`.

Invariant: every call ends within a bound, writes carry our field manager and are validated strictly, and a
refusal is an `ApiError` with the server's own words. Objects are plain data: the generated classes drop what
they do not know, and an operator that writes back what it read would delete it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import aiohttp
from kubernetes.aio.client.api_client import ApiClient

from vacancy_operator.access import AccessError
from vacancy_operator.core.kinds import FIELD_MANAGER, SELECTOR, SERVICE_ACCOUNT, Kind, Object, Ref, metadata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_operator.access import Access
    from vacancy_operator.metrics import Metrics

CALL = aiohttp.ClientTimeout(total=15.0, sock_connect=5.0)
PAGE = 500
_APPLY = "application/apply-patch+yaml"
_ERRORS, _UNAUTHORIZED, _MISSING, _CONFLICT, _BROKEN = 400, 401, 404, 409, 500
_SHOWN = 400


class ApiError(Exception):
    """A call that did not do what it was for; `status` is None where no answer came."""

    def __init__(self, status: int | None, message: str) -> None:
        super().__init__(message if status is None else f"{status}: {message}")
        self.status = status

    @property
    def missing(self) -> bool:
        """There is no such object, or nothing of its kind."""
        return self.status == _MISSING

    @property
    def outage(self) -> bool:
        """The API server did not answer, or could not: what it says of objects is not known."""
        return self.status is None or self.status >= _BROKEN

    @property
    def conflict(self) -> bool:
        """The object is another one by now."""
        return self.status == _CONFLICT


class Contact:
    """Since when there has been an answer at least every `gap` seconds."""

    def __init__(self, gap: float) -> None:
        self._gap = gap
        self._since: float | None = None
        self._last: float | None = None

    def made(self, at: float) -> None:
        """An answer came."""
        if self._last is None or at - self._last > self._gap:
            self._since = at
        self._last = at

    def since(self, now: float) -> float | None:
        """Seconds on the same clock; None: the last answer is too long ago."""
        return None if self._last is None or now - self._last > self._gap else self._since


class Api:
    """The API server, in one namespace. Make it on the running loop, and close it."""

    def __init__(self, access: Access, namespace: str, metrics: Metrics) -> None:
        self._access = access
        self._metrics = metrics
        self._client: ApiClient | None = None
        self.namespace = namespace

    async def close(self) -> None:
        """Close every connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()  # type: ignore[no-untyped-call] # generated code

    async def get(self, ref: Ref) -> Object | None:
        """One object; None: there is none."""
        return await self.read(self._path(ref.kind, ref.name))

    async def read(self, path: str) -> Object | None:
        """What is at a path; None: nothing."""
        try:
            return await self._call("GET", path)
        except ApiError as fault:
            if fault.missing:
                return None
            raise

    async def list(self, kind: Kind) -> tuple[list[Object], int]:
        """All objects of a kind that concern us, and the version of the list."""
        query = {"limit": str(PAGE), **({"labelSelector": SELECTOR} if kind.labelled else {})}
        items: list[Object] = []
        while True:
            page = await self._call("GET", self._path(kind), query)
            items += page.get("items") or []
            token = page["metadata"].get("continue")
            if not token:
                return items, int(page["metadata"]["resourceVersion"])
            query = {**query, "continue": token}

    async def apply(self, kind: Kind, item: Object, subresource: str = "") -> Object:
        """Server-side apply with force; the object as it is after it."""
        path = self._path(kind, str(metadata(item)["name"]), subresource)
        query = {"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"}
        return await self._write(kind, "apply", "PATCH", path, query, item, _APPLY)

    async def create(self, kind: Kind, item: Object) -> Object:
        """A new object."""
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        return await self._write(kind, "create", "POST", self._path(kind), query, item)

    async def replace(self, kind: Kind, item: Object) -> Object:
        """The whole object, if it still has the version that the item has."""
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        path = self._path(kind, str(metadata(item)["name"]))
        return await self._write(kind, "update", "PUT", path, query, item)

    async def delete(self, kind: Kind, item: Object) -> None:
        """This very object, not another of its name; no error where it is gone."""
        path = self._path(kind, str(metadata(item)["name"]))
        body = {"preconditions": {"uid": metadata(item)["uid"]}, "propagationPolicy": "Background"}
        try:
            await self._write(kind, "delete", "DELETE", path, {}, body)
        except ApiError as fault:
            if not fault.missing:
                raise

    async def token(self, account: str, secret: Object, seconds: int) -> str:
        """A token of a ServiceAccount that is void as soon as the Secret is deleted."""
        about = metadata(secret)
        bound = {"apiVersion": "v1", "kind": "Secret", "name": about["name"], "uid": about["uid"]}
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds, "boundObjectRef": bound},
        }
        path = self._path(SERVICE_ACCOUNT, account, "token")
        made = await self._write(SERVICE_ACCOUNT, "token", "POST", path, {}, body)
        return str(made["status"]["token"])

    def _path(self, kind: Kind, name: str = "", subresource: str = "") -> str:
        parts = [f"{kind.root}/namespaces/{self.namespace}/{kind.plural}", name, subresource]
        return "/".join(part for part in parts if part)

    async def _write(
        self,
        kind: Kind,
        verb: str,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Object,
        content_type: str = "application/json",
    ) -> Object:
        self._metrics.wrote(kind.name, verb)
        return await self._call(method, path, query, body, content_type)

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        try:
            client = await self._connected()
            # Only the head is left to the client: it would copy the body piece by piece.
            _, url, headers, _, _ = await client.param_serialize(
                method,
                path,
                query_params=list((query or {}).items()),
                header_params={"Accept": "application/json", "Content-Type": content_type},
                auth_settings=["BearerToken"],
            )
            answer = await client.call_api(method, url, headers, body, _request_timeout=CALL)
            content = await answer.read()  # type: ignore[no-untyped-call] # generated code
        except (aiohttp.ClientError, AccessError, TimeoutError, OSError) as error:
            raise ApiError(None, f"{method} {path}: {error or type(error).__name__}") from error
        if answer.status == _UNAUTHORIZED:
            await self.close()  # the next call reads the credentials anew
        if answer.status >= _ERRORS:
            raise ApiError(answer.status, f"{method} {path}: {_words(content)}")
        found: dict[str, Any] = json.loads(content)
        return found

    async def _connected(self) -> ApiClient:
        if self._client is None:
            self._client = ApiClient(await self._access.configuration())
        return self._client


def _words(content: bytes) -> str:
    try:
        return str(json.loads(content)["message"])[:_SHOWN]
    except (ValueError, KeyError, TypeError):
        return content[:_SHOWN].decode(errors="replace") or "no reason given"
