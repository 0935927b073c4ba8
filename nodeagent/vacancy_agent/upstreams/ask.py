"""The agent's own requests to the servers behind it.

Invariant: every answer is bounded in time and size, nothing follows a redirect or an environment's proxy, and
each request is a connection of its own that is closed whole. A llama-server keeps a thread for every open
connection and takes a half-closed one for a client that left, so idle connections towards it are not kept.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from vacancy_agent.core.settings import Target

DEADLINE_S = 5.0
MAX_ANSWER = 4 << 20


class AskError(Exception):
    """The server did not give an answer that can be read; the message says why, for people."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One complete answer."""

    status: int
    body: bytes

    def json(self) -> Any:
        """The decoded body.

        Raises:
            AskError: it is no JSON.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise AskError(f"answered {self.status} without JSON") from error


def open_session() -> aiohttp.ClientSession:
    """The one session for every server; close it at the end. Call it on the running loop."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(force_close=True, limit=16),
        timeout=aiohttp.ClientTimeout(total=DEADLINE_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        headers={"User-Agent": "vacancy", "Accept": "*/*", "Accept-Encoding": "identity"},
    )


class ServerClient:
    """One server, with its credential."""

    def __init__(self, session: aiohttp.ClientSession, target: Target, credential: str | None = None) -> None:
        """`credential` is sent as a bearer token."""
        host = f"[{target.host}]" if ":" in target.host else target.host
        self._base = f"{target.scheme}://{host}:{target.port}"
        self._session = session
        self._headers = {"Authorization": f"Bearer {credential}"} if credential else {}

    async def get(self, path: str) -> Answer:
        """GET a path, whatever the status of the answer.

        Raises:
            AskError: no answer within `DEADLINE_S`, or one above `MAX_ANSWER` bytes.
        """
        try:
            async with self._session.get(
                self._base + path, headers=self._headers, allow_redirects=False
            ) as response:
                return Answer(response.status, await _bounded(response))
        except TimeoutError as error:
            raise AskError(f"no answer to GET {path} within {DEADLINE_S:.0f} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise AskError(f"GET {path}: {error or type(error).__name__}") from error


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_ANSWER:
            raise AskError(f"its answer is above {MAX_ANSWER >> 20} MiB")
        await asyncio.sleep(0)
    return bytes(body)
