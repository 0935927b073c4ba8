"""The agent's own requests to the servers behind it.

Invariant: every answer is bounded in time and size, nothing follows a redirect or an environment's proxy, and
each request is a connection of its own that is closed whole. A llama-server keeps a thread for every open
connection and takes a half-closed one for a client that left, so idle connections towards it are not kept.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_agent.core.settings import Target

DEADLINE_S = 5.0
MAX_ANSWER = 4 << 20
_PIECE = 64 << 10
_OK = 200


class AskError(Exception):
    """The server did not give an answer that can be read; the message says why, for people."""


class NoAnswerError(AskError):
    """It took longer than we wait: the server may be at work on it all the same."""


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


@cache
def _trusting() -> ssl.SSLContext:
    """Trusts whom this machine trusts; made for the first server with TLS."""
    return ssl.create_default_context()


class ServerClient:
    """One server, with its credential."""

    def __init__(self, session: aiohttp.ClientSession, target: Target, credential: str | None = None) -> None:
        """`credential` is sent as a bearer token."""
        host = f"[{target.host}]" if ":" in target.host else target.host
        self._base = f"{target.scheme}://{host}:{target.port}"
        self._session = session
        # aiohttp's own context may know no authority (`platform.authorities`).
        self._ssl: ssl.SSLContext | bool = _trusting() if target.scheme == "https" else True
        self._headers = {"Authorization": f"Bearer {credential}"} if credential else {}

    async def get(self, path: str, timeout: float | None = None) -> Answer:  # noqa: ASYNC109 - as below
        """GET a path, whatever the status of the answer. `timeout` in seconds, else `DEADLINE_S`.

        Raises:
            AskError: no answer in time, or one above `MAX_ANSWER` bytes.
        """
        return await self.request("GET", path, timeout=timeout)

    async def post(
        self,
        path: str,
        json: object,
        timeout: float | None = None,  # noqa: ASYNC109 - as below
    ) -> Answer:
        """POST a JSON body, whatever the status of the answer. `timeout` in seconds, else `DEADLINE_S`.

        Raises:
            AskError: no answer in time, or one above `MAX_ANSWER` bytes.
        """
        return await self.request("POST", path, json, timeout)

    async def request(
        self,
        method: str,
        path: str,
        json: object = None,
        timeout: float | None = None,  # noqa: ASYNC109 - a caller's own bound would hide which request it was
    ) -> Answer:
        """One request, whatever the status of the answer; `json` None: it has no body.

        Raises:
            AskError: no answer within `timeout` seconds (else `DEADLINE_S`), or one above `MAX_ANSWER` bytes.
        """
        seconds = DEADLINE_S if timeout is None else timeout
        try:
            async with self._session.request(
                method,
                self._base + path,
                json=json,
                headers=self._headers,
                ssl=self._ssl,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=seconds),
            ) as response:
                return Answer(response.status, await _bounded(response))
        except TimeoutError as error:
            raise NoAnswerError(f"no answer to {method} {path} within {seconds:g} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise AskError(f"{method} {path}: {_words(error)}") from error

    async def read(self, path: str, take: Callable[[bytes], bool], *, most: int) -> int:
        """GET a path and hand its body over as it comes; the status. Only the body of a 200 is read.

        Args:
            path: what to get.
            take: gets the next piece, of at most 64 KiB; True: it needs no more.
            most: bytes to read at most.

        Raises:
            AskError: no whole answer within `DEADLINE_S`, or one above `most` bytes that `take` still reads.
        """
        try:
            async with self._session.get(
                self._base + path, headers=self._headers, ssl=self._ssl, allow_redirects=False
            ) as response:
                if response.status == _OK:
                    await _hand_over(response, take, most)
                return response.status
        except TimeoutError as error:
            raise NoAnswerError(f"no answer to GET {path} within {DEADLINE_S:g} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise AskError(f"GET {path}: {_words(error)}") from error


def _words(error: Exception) -> str:
    """What went wrong, for people: a refused connection is the usual case, and aiohttp's words hide it."""
    if isinstance(getattr(error, "os_error", error), ConnectionRefusedError):
        return "connection refused: is it running?"
    return str(error) or type(error).__name__


async def _hand_over(response: aiohttp.ClientResponse, take: Callable[[bytes], bool], most: int) -> None:
    size = 0
    async for chunk in response.content.iter_chunked(_PIECE):
        size += len(chunk)
        if size > most:
            raise AskError(f"its answer is above {most >> 20} MiB")
        if take(chunk):
            return
        await asyncio.sleep(0)


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_ANSWER:
            raise AskError(f"its answer is above {MAX_ANSWER >> 20} MiB")
        await asyncio.sleep(0)
    return bytes(body)
