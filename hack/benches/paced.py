"""An upstream of the openai dialect that streams at a fixed pace and knows when its connections closed.

    python -m benches.paced PORT

A POST with `"stream": true` gets `max_tokens` events, 200 a second, each with the time of its writing; any
other POST is read to its end and answered with 1 KB. `/metrics` tells the two figures of vLLM, so the agent
has its proof that nothing runs; `/bench/state` tells what is open and when the last stream closed.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from typing import TYPE_CHECKING, cast

import uvloop

from benches.nginx import reply_body
from benches.parts import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Callable

TICK_S = 0.005
EVENTS_PER_SECOND = round(1 / TICK_S)
EVENT = 'data: {"t":%019d,"choices":[{"index":0,"delta":{"content":"token"}}]}\n\n'
LAST = b"data: [DONE]\n\n"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
WANTED = re.compile(rb'"max_tokens": *(\d+)')
OPENING_BYTES = 4096
"""What is kept of a body: enough to read `stream` and `max_tokens` of a small one."""


def chunk(content: bytes) -> bytes:
    """One chunk of the chunked coding."""
    return b"%x\r\n%s\r\n" % (len(content), content)


def plain(status: str, content: bytes, kind: str = "application/json") -> bytes:
    """A complete answer."""
    return (
        f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(content)}\r\n\r\n".encode()
        + content
    )


class Pace:
    """The one ticker: writes an event to every stream, and rests while there is none."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.streams: set[Connection] = set()
        self.closed = 0
        self.last_closed = 0.0
        self._next = 0.0

    def join(self, connection: Connection) -> None:
        """A stream begins."""
        if not self.streams:
            self._next = self.loop.time() + TICK_S
            self.loop.call_at(self._next, self._tick)
        self.streams.add(connection)

    def cut(self, connection: Connection) -> None:
        """A connection closed under its stream."""
        if connection in self.streams:
            self.streams.discard(connection)
            self.closed += 1
            self.last_closed = time.monotonic()

    def _tick(self) -> None:
        for connection in tuple(self.streams):
            connection.write_event()
        if self.streams:
            # A late tick is not made up for by a burst of several: it shows as events not delivered.
            self._next = max(self._next + TICK_S, self.loop.time())
            self.loop.call_at(self._next, self._tick)

    def state(self) -> bytes:
        """What `/bench/state` answers."""
        return json.dumps(
            {"open": len(self.streams), "closed": self.closed, "last_closed": self.last_closed}
        ).encode()

    def metrics(self) -> bytes:
        """The two figures of vLLM that tell whether anything runs."""
        names = ("running", "waiting")
        values = (len(self.streams), 0)
        return "".join(
            f'vllm:num_requests_{name}{{model_name="bench"}} {value}.0\n'
            for name, value in zip(names, values, strict=True)
        ).encode()


class Connection(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.transport: asyncio.Transport
        self.head = b""
        self.opening = b""
        self.body_left = 0
        self.events_left = 0
        self.paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.pace.cut(self)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False

    def data_received(self, data: bytes) -> None:
        """Collect the head, count the body, answer at its end."""
        if not self.body_left:
            self.head += data
            if b"\r\n\r\n" not in self.head:
                return
            self.head, _, data = self.head.partition(b"\r\n\r\n")
            length = LENGTH.search(self.head)
            self.body_left = int(length[1]) if length else 0
            self.opening = b""
        if len(self.opening) < OPENING_BYTES:
            self.opening += data[:OPENING_BYTES]
        self.body_left -= len(data)
        if not self.body_left:
            self.answer()

    def answer(self) -> None:
        """The request is complete."""
        line, self.head = self.head.split(b"\r\n", 1)[0], b""
        if line.startswith(b"POST") and b'"stream":true' in self.opening:
            wanted = WANTED.search(self.opening)
            self.events_left = int(wanted[1]) if wanted else EVENTS_PER_SECOND
            self.transport.write(STREAM_HEAD)
            self.pace.join(self)
            return
        self.transport.write(self.fixed_answer(line.split(b" ")[1]))

    def fixed_answer(self, path: bytes) -> bytes:
        """Everything that does not stream."""
        answers: dict[bytes, Callable[[], bytes]] = {
            b"/bench/state": lambda: plain("200 OK", self.pace.state()),
            b"/metrics": lambda: plain("200 OK", self.pace.metrics(), "text/plain"),
            b"/v1/models": lambda: plain(
                "200 OK", b'{"object":"list","data":[{"id":"bench","object":"model"}]}'
            ),
        }
        return answers.get(path, lambda: plain("200 OK", reply_body().encode()))()

    def write_event(self) -> None:
        """One event, unless the other side does not keep up."""
        if self.paused:
            return
        self.transport.write(chunk((EVENT % time.monotonic_ns()).encode()))
        self.events_left -= 1
        if self.events_left <= 0:
            self.pace.streams.discard(self)
            self.transport.write(chunk(LAST) + b"0\r\n\r\n")


async def serve(port: int) -> None:
    """Serve until the process is ended."""
    loop = asyncio.get_running_loop()
    pace = Pace(loop)
    server = await loop.create_server(lambda: Connection(pace), LOOPBACK, port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
