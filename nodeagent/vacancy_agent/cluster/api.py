"""The few calls that an agent makes to the API server, on the transport of `kubernetes.aio`.

Invariant: every call but a watch ends within a bound, and whatever comes back is a document or an `ApiError`.
Objects are plain data here. The generated classes are not used: the one for the core API alone adds 94 MiB to
the process, for a Secret and a ConfigMap that are three keys each.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration

from vacancy_agent.cluster.fault import ApiError, fault_in_event, fault_of
from vacancy_agent.cluster.identity import JoinError
from vacancy_agent.cluster.skew import parse_date, skew

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from vacancy_agent.clock import Clock
    from vacancy_agent.cluster.identity import Identity

Document = dict[str, Any]

MANAGER = "vacancy-agent"
CALL_S = 8.0
CONNECT_S = 4.0
WATCH_S = 60
"""A revoked token keeps an open watch until its end: hence the bound, which the server is asked to keep."""
_CALL = aiohttp.ClientTimeout(total=CALL_S, sock_connect=CONNECT_S)
_WATCH = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
_ERRORS = 400
_APPLY = "application/apply-patch+yaml"


class ClusterApi:
    """The API server, as this host. Make it on the running loop, and close it."""

    def __init__(self, identity: Identity, clock: Clock) -> None:
        self._identity = identity
        self._clock = clock
        self._client: ApiClient | None = None
        self._trusts: str | None = None
        self.skew: float | None = None
        """Seconds that this machine's clock is ahead; None: no answer so far."""

    async def close(self) -> None:
        """Close every connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.rest_client.close()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Document:
        """One object or list.

        Raises:
            ApiError: there is no such answer.
        """
        return await self._document("GET", path, query or {})

    async def apply(self, path: str, body: Document) -> Document:
        """Server-side apply of what this agent owns; returns the object as it is now.

        Raises:
            ApiError: it was not applied, or nobody knows.
        """
        query = {"fieldManager": MANAGER, "force": "true", "fieldValidation": "Strict"}
        return await self._document("PATCH", path, query, body)

    async def watch(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[Document, None]:
        """Events (`type`, `object`) until the server ends the watch, a minute at most.

        Raises:
            ApiError: it broke, or the server sent an ERROR.
        """
        query = {**query, "watch": "true", "timeoutSeconds": str(WATCH_S)}
        async with self._answer("GET", path, query, None, _WATCH) as answer:
            while line := await answer.content.readline():
                event = _decoded(line)
                if event.get("type") == "ERROR":
                    raise fault_in_event(event)
                yield event

    async def _document(
        self, method: str, path: str, query: Mapping[str, str], body: Document | None = None
    ) -> Document:
        async with self._answer(method, path, query, body, _CALL) as answer:
            return _decoded(await answer.read())

    @contextlib.asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Document | None,
        limit: aiohttp.ClientTimeout,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer below 400; whatever happens while it is read is a fault too."""
        answer = None
        try:
            answer = await self._send(method, path, query, body, limit)
            if answer.status >= _ERRORS:
                raise fault_of(answer.status, answer.headers, await answer.read())
            yield answer
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise ApiError(None, _told(error)) from error
        except JoinError as error:
            raise ApiError(None, str(error)) from error
        finally:
            if answer is not None:
                answer.close() if limit is _WATCH else answer.release()

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Document | None,
        limit: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        headers = {
            "Authorization": f"Bearer {self._identity.token()}",
            "Accept": "application/json",
            "User-Agent": MANAGER,
            "Content-Type": _APPLY if body is not None else "application/json",
        }
        url = f"{self._identity.server}{path}" + (f"?{urlencode(query)}" if query else "")
        client = await self._connected()
        sent = self._clock.wall()
        made = await client.call_api(method, url, headers, body, _request_timeout=limit)
        answer: aiohttp.ClientResponse = made.response
        date = parse_date(answer.headers.get("Date"))
        if date is not None:
            self.skew = skew(sent, self._clock.wall(), date)
        return answer

    async def _connected(self) -> ApiClient:
        """The client, made anew when another certificate authority is to be trusted."""
        trusted = self._identity.authority()
        if self._client is not None and trusted != self._trusts:
            await self.close()
        if self._client is None:
            settings = Configuration(
                host=self._identity.server,
                ca_cert_data=trusted,
                client_session_kwargs={"trust_env": False, "cookie_jar": aiohttp.DummyCookieJar()},
            )
            self._client, self._trusts = ApiClient(settings), trusted
        return self._client


def _decoded(content: bytes) -> Document:
    document = json.loads(content)
    if not isinstance(document, dict):
        raise ValueError("the answer is no object")  # noqa: TRY004 - like any other text that is no document
    return document


def _told(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__
