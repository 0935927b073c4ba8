"""The borrower: one streamed question at a time, through the agent's proxy."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from demo.parts import TryError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    import aiohttp

    from demo.parts import Running

REFUSED = 503
OK = 200


@dataclass
class Answer:
    """What has come so far."""

    pieces: list[str] = field(default_factory=list)
    first_s: float = 0.0
    """Seconds from the question to the first token."""
    whole_s: float = 0.0

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True)
class Refusal:
    status: str
    headers: Mapping[str, str]
    body: str
    after_s: float


class Borrower:
    """Asks one agent."""

    def __init__(self, agent: Running, http: aiohttp.ClientSession) -> None:
        self._agent = agent
        self._http = http
        self.url = f"{agent.proxy}/v1/chat/completions"

    async def ask(self, tokens: int) -> Answer:
        """A whole answer of that many tokens."""
        answer = Answer()
        began = time.monotonic()
        async with self.stream(tokens) as pieces:
            async for piece in pieces:
                answer.first_s = answer.first_s or time.monotonic() - began
                answer.pieces.append(piece)
        answer.whole_s = time.monotonic() - began
        return answer

    @contextlib.asynccontextmanager
    async def stream(self, tokens: int) -> AsyncIterator[AsyncIterator[str]]:
        """An answer that has begun, piece by piece; a cut is an `aiohttp.ClientError`."""
        async with self._post(tokens) as reply:
            if reply.status != OK:
                raise TryError(f"the borrower was answered {reply.status}: {await reply.text()}")
            yield _pieces(reply)

    async def be_refused(self) -> Refusal:
        """Ask, and expect a no with a reason."""
        began = time.monotonic()
        async with self._post(8) as reply:
            body = await reply.text()
            refusal = Refusal(f"{reply.status} {reply.reason}", reply.headers, body, time.monotonic() - began)
            if reply.status != REFUSED or "X-Vacancy-Reason" not in reply.headers:
                raise TryError(f"that is not the refusal that was expected: {refusal.status} {body}")
        return refusal

    def _post(self, tokens: int) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientResponse]:
        ask = [{"role": "user", "content": "Tell me about idle machines."}]
        question = {"messages": ask, "stream": True, "max_tokens": tokens, "ignore_eos": True}
        return self._http.post(self.url, headers=bearer(self._agent.borrow), json=question)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def _pieces(reply: aiohttp.ClientResponse) -> AsyncIterator[str]:
    async for line in reply.content:
        if line.startswith(b"data: {"):
            event: dict[str, Any] = json.loads(line[6:])
            choices = event.get("choices")
            piece = choices[0]["delta"].get("content") if choices else None
            if piece:
                yield piece
