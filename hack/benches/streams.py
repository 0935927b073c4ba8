"""The client of many paced streams: counts events or takes their delays, and drops connections on demand."""

from __future__ import annotations

import asyncio
import json
import re
import time
from typing import TYPE_CHECKING, cast

from benches.parts import LOOPBACK, PartError

if TYPE_CHECKING:
    from benches.wrk import Target

STAMP = re.compile(rb'"t":(\d{19})')
FIRST_EVENT_DEADLINE_S = 20.0
ENDLESS = 10_000_000


class StreamError(PartError):
    """A stream was refused or ended early."""


class Stream(asyncio.Protocol):
    """One streaming request on a connection of its own."""

    def __init__(self, request: bytes, *, delays: list[float] | None = None) -> None:
        self._request = request
        self._delays = delays
        self.transport: asyncio.Transport
        self.events = 0
        self.first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.closed: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self.opening = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.first.done():
            self._open(data)
        self.events += data.count(b'"t":')
        if self._delays is not None:
            now = time.monotonic_ns()
            self._delays.extend((now - int(stamp)) / 1e9 for stamp in STAMP.findall(data))

    def _open(self, data: bytes) -> None:
        self.opening += data
        if b"\r\n\r\n" not in self.opening:
            return
        if b" 200 " in self.opening[:16]:
            if b'"t":' in self.opening:
                self.first.set_result(None)
        else:
            self.first.set_exception(StreamError(self.opening[:500].decode(errors="replace")))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.first.done():
            self.first.set_exception(
                StreamError(f"closed before the first event: {exc!r} {self.opening[:300]!r}")
            )
        self.closed.set_result(time.monotonic())

    def abort(self) -> None:
        """Leave without a word."""
        self.transport.abort()


def request_bytes(target: Target, *, events: int) -> bytes:
    """A streaming chat request for so many events."""
    body = json.dumps(
        {
            "model": "bench",
            "stream": True,
            "max_tokens": events,
            "messages": [{"role": "user", "content": "go"}],
        },
        separators=(",", ":"),
    ).encode()
    lines = [
        "POST /v1/chat/completions HTTP/1.1",
        f"Host: {LOOPBACK}:{target.port}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *([f"Authorization: Bearer {target.token}"] if target.token else []),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def open_streams(
    target: Target, count: int, *, events: int = ENDLESS, delays: list[float] | None = None
) -> list[Stream]:
    """Open `count` streams and wait until every one has delivered an event.

    Raises:
        StreamError: one was refused; the message has the answer.
    """
    loop = asyncio.get_running_loop()
    request = request_bytes(target, events=events)
    streams: list[Stream] = []
    for _ in range(count):
        _, stream = await loop.create_connection(
            lambda: Stream(request, delays=delays), LOOPBACK, target.port
        )
        streams.append(stream)
    async with asyncio.timeout(FIRST_EVENT_DEADLINE_S):
        await asyncio.gather(*(stream.first for stream in streams))
    return streams


async def close_all(streams: list[Stream]) -> None:
    """Abort whatever is still open, wait until all are closed."""
    for stream in streams:
        stream.abort()
    await asyncio.gather(*(stream.closed for stream in streams))


async def count_for(streams: list[Stream], seconds: float) -> float:
    """Events a second over all streams, in a window that starts now."""
    loop = asyncio.get_running_loop()
    before, started = sum(stream.events for stream in streams), loop.time()
    await asyncio.sleep(seconds)
    return (sum(stream.events for stream in streams) - before) / (loop.time() - started)
