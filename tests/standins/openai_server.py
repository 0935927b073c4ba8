"""A stand-in for an OpenAI-compatible server: a program of its own on a real socket.

It replays the shapes of vLLM 0.32 (routes, events, `[DONE]`, the two gauges of `/metrics`) and misbehaves on
demand. What it does with a request is said by the request's JSON field `standin`, else by what was last put
to `/_standin/behaviour`. Fields, all optional:

    head_delay_s   seconds before the response head
    first_delay_s  seconds between the head of a stream and its first chunk
    chunks         events or words to send (5)
    every_s        seconds between two chunks (0)
    status         answer this status with an OpenAI error
    bytes          send that many bytes of body instead
    cut            close after that many chunks, in the middle of the body
    done           false: no `[DONE]` at the end
    raw            these characters (latin-1) as the whole answer
    dirty          these characters after the complete answer
    close          true: close after the answer
    lingers_s      count as running that long after the client left (vLLM itself: 0.05)

`GET /_standin/seen` lists what came: method, target, headers, body (at most 4 KiB), sizes, and on the clock
CLOCK_MONOTONIC when it began, when it ended, how (`done`, `client gone`, `cut`), and the connection's number.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from standins.program import StandinProgram, listening_on

MODEL = "standin-model"
BODY_KEPT = 4096
LIMIT = 1 << 26
BLOCK = b"x" * 65536


@dataclass(slots=True)
class Behaviour:
    """What is done with a request; see the top of the file."""

    head_delay_s: float = 0.0
    first_delay_s: float = 0.0
    chunks: int = 5
    every_s: float = 0.0
    status: int = 200
    bytes: int = 0
    cut: int | None = None
    done: bool = True
    raw: str | None = None
    dirty: str = ""
    close: bool = False
    lingers_s: float = 0.05


@dataclass(slots=True)
class Seen:
    """One request as it came."""

    connection: int
    method: str
    target: str
    headers: list[tuple[str, str]]
    began: float
    body: str = ""
    body_bytes: int = 0
    sent_chunks: int = 0
    sent_bytes: int = 0
    ended: float | None = None
    how: str = "running"


class ClientGoneError(Exception):
    """The client closed its side."""


@dataclass(slots=True)
class State:
    """What the program knows."""

    behaviour: dict[str, Any] = field(default_factory=dict)
    metrics: bool = True
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    working: int = 0
    lingering: list[asyncio.TimerHandle] = field(default_factory=list)

    @property
    def running(self) -> int:
        return self.working + len(self.lingering)


class Connection:
    """One client connection, request after request."""

    def __init__(self, state: State, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._state = state
        self._reader = reader
        self._writer = writer
        state.connections += 1
        self._number = state.connections

    async def serve(self) -> None:
        self._state.open += 1
        try:
            while await self._one():
                pass
        except (ConnectionError, asyncio.IncompleteReadError, ClientGoneError):
            pass
        finally:
            self._state.open -= 1
            self._writer.close()

    async def _one(self) -> bool:
        head = await self._reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        method, target, _ = first.split(" ")
        headers = [
            (name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)
        ]
        seen = Seen(self._number, method, target, headers, time.monotonic())
        body = await self._body(dict(headers))
        seen.body, seen.body_bytes = body[:BODY_KEPT].decode("latin-1"), len(body)
        if target.startswith("/_standin/"):
            self._control(method, target, body)
            return True
        self._state.seen.append(seen)
        wanted = self._behaviour(body)
        try:
            return await self._answer(seen, body, wanted)
        except (ConnectionError, ClientGoneError):
            seen.how = "client gone"
            raise
        finally:
            seen.ended = time.monotonic()

    async def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("expect", "").lower() == "100-continue":
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if headers.get("transfer-encoding", "").lower() == "chunked":
            parts = []
            while size := int(await self._reader.readline(), 16):
                parts.append(await self._reader.readexactly(size))
                await self._reader.readline()
            await self._reader.readline()
            return b"".join(parts)
        return await self._reader.readexactly(int(headers.get("content-length", 0)))

    def _behaviour(self, body: bytes) -> Behaviour:
        said = dict(self._state.behaviour)
        with contextlib.suppress(ValueError):
            parsed = json.loads(body)
            if isinstance(parsed, dict):
                said |= parsed.get("standin", {})
        return Behaviour(**said)

    def _control(self, method: str, target: str, body: bytes) -> None:
        state = self._state
        if target == "/_standin/behaviour" and method == "PUT":
            state.behaviour = json.loads(body)
        elif target == "/_standin/metrics" and method == "PUT":
            state.metrics = json.loads(body)
        elif target == "/_standin/seen" and method == "DELETE":
            state.seen.clear()
        elif target == "/_standin/lingering" and method == "DELETE":
            for timer in state.lingering:
                timer.cancel()
            state.lingering.clear()
        counts = {"connections": state.connections, "open": state.open, "running": state.running}
        self._reply(200, {"seen": [asdict(seen) for seen in state.seen], **counts})

    def _reply(self, status: int, document: object, kind: str = "application/json") -> None:
        body = document.encode() if isinstance(document, str) else json.dumps(document).encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)

    async def _answer(self, seen: Seen, body: bytes, wanted: Behaviour) -> bool:
        if seen.method in ("GET", "HEAD"):
            self._read_route(seen)
            await self._writer.drain()
            seen.how = "done"
            return True
        return await self._work(seen, body, wanted)

    def _read_route(self, seen: Seen) -> None:
        if seen.method == "HEAD":
            self._writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
            return
        path = seen.target.partition("?")[0]
        if path == "/health":
            self._reply(200, "")
        elif path == "/v1/models":
            self._reply(
                200, {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "vllm"}]}
            )
        elif path == "/metrics" and self._state.metrics:
            self._reply(200, metrics_text(self._state.running), "text/plain; version=0.0.4")
        else:
            self._reply(404, {"detail": "Not Found"})

    async def _work(self, seen: Seen, body: bytes, wanted: Behaviour) -> bool:
        self._state.working += 1
        gone = False
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._until_gone())
                open_still = await self._send(seen, body, wanted)
                watch.cancel()
        except* (ClientGoneError, ConnectionError):
            gone = True
        finally:
            self._state.working -= 1
            if gone:
                self._linger(wanted.lingers_s)
        if gone:
            raise ClientGoneError
        return open_still

    def _linger(self, seconds: float) -> None:
        lingering = self._state.lingering
        timer = asyncio.get_running_loop().call_later(seconds, lambda: lingering.remove(timer))
        lingering.append(timer)

    async def _until_gone(self) -> None:
        # A client sends nothing while it waits for its answer, so the next thing to read is the end.
        if not await self._reader.read(1):
            raise ClientGoneError

    async def _send(self, seen: Seen, body: bytes, wanted: Behaviour) -> bool:
        await asyncio.sleep(wanted.head_delay_s)
        if wanted.raw is not None:
            self._writer.write(wanted.raw.encode("latin-1"))
        elif wanted.status != 200:
            error = {"message": "as told", "type": "BadRequestError", "param": None, "code": wanted.status}
            self._reply(wanted.status, {"error": error})
        elif wanted.bytes:
            await self._send_bytes(seen, wanted)
        elif _streams(body):
            await self._send_events(seen, wanted)
        else:
            await self._send_whole(seen, wanted)
        self._writer.write(wanted.dirty.encode("latin-1"))
        await self._writer.drain()
        if seen.how == "running":
            seen.how = "done"
        return not (wanted.close or seen.how == "cut")

    async def _send_bytes(self, seen: Seen, wanted: Behaviour) -> None:
        self._head("application/octet-stream", f"Content-Length: {wanted.bytes}")
        while seen.sent_bytes < wanted.bytes:
            block = BLOCK[: wanted.bytes - seen.sent_bytes]
            self._writer.write(block)
            await self._writer.drain()
            seen.sent_bytes += len(block)

    async def _send_events(self, seen: Seen, wanted: Behaviour) -> None:
        self._head("text/event-stream; charset=utf-8", "Transfer-Encoding: chunked")
        await asyncio.sleep(wanted.first_delay_s)
        for number in range(wanted.chunks):
            if number == wanted.cut:
                seen.how = "cut"
                return
            last = number == wanted.chunks - 1
            delta = {
                "index": 0,
                "delta": {"content": f"w{number} "},
                "finish_reason": "stop" if last else None,
            }
            event = {"id": "cmpl-1", "object": "chat.completion.chunk", "model": MODEL, "choices": [delta]}
            self._chunk(b"data: " + json.dumps(event).encode() + b"\n\n")
            await self._writer.drain()
            seen.sent_chunks += 1
            await asyncio.sleep(wanted.every_s)
        if wanted.done:
            self._chunk(b"data: [DONE]\n\n")
        self._writer.write(b"0\r\n\r\n")

    def _head(self, kind: str, framing: str) -> None:
        self._writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{framing}\r\n\r\n".encode())

    def _chunk(self, data: bytes) -> None:
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def _send_whole(self, seen: Seen, wanted: Behaviour) -> None:
        await asyncio.sleep(wanted.every_s * wanted.chunks)
        text = "".join(f"w{number} " for number in range(wanted.chunks))
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 3, "completion_tokens": wanted.chunks, "total_tokens": 3 + wanted.chunks}
        document = {
            "id": "cmpl-1",
            "object": "chat.completion",
            "model": MODEL,
            "choices": [choice],
            "usage": usage,
        }
        if wanted.cut is None:
            self._reply(200, document)
            return
        body = json.dumps(document)
        self._head("application/json", f"Content-Length: {len(body)}")
        self._writer.write(body[: len(body) // 2].encode())
        seen.how = "cut"


def _streams(body: bytes) -> bool:
    with contextlib.suppress(ValueError):
        parsed = json.loads(body)
        return isinstance(parsed, dict) and parsed.get("stream") is True
    return False


def metrics_text(running: int) -> str:
    """The two gauges as vLLM prints them."""
    labels = f'{{engine="0",model_name="{MODEL}"}}'
    return (
        "# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
        "# TYPE vllm:num_requests_running gauge\n"
        f"vllm:num_requests_running{labels} {float(running)}\n"
        "# HELP vllm:num_requests_waiting Number of requests waiting to be processed.\n"
        "# TYPE vllm:num_requests_waiting gauge\n"
        f"vllm:num_requests_waiting{labels} 0.0\n"
    )


class OpenAiStandin(StandinProgram):
    """The program as a test starts it: `with OpenAiStandin() as server:`."""

    def __init__(self, port: int = 0) -> None:
        super().__init__("standins.openai_server", "--port", str(port))

    def behave(self, **behaviour: object) -> None:
        """What requests from now on get, unless they say otherwise themselves."""
        self.ask("PUT", "/_standin/behaviour", behaviour)

    def show_metrics(self, *, shown: bool) -> None:
        self.ask("PUT", "/_standin/metrics", shown)

    def report(self) -> dict[str, Any]:
        """`seen`, and the counts `connections` (so far), `open` and `running` (now)."""
        found: dict[str, Any] = self.ask("GET", "/_standin/seen")
        return found

    def seen(self) -> list[dict[str, Any]]:
        """The requests so far."""
        found: list[dict[str, Any]] = self.report()["seen"]
        return found

    def forget(self) -> None:
        """Empty the list of requests."""
        self.ask("DELETE", "/_standin/seen")

    def let_go(self) -> None:
        """Whatever still counts as running for a client that left has ended now."""
        self.ask("DELETE", "/_standin/lingering")


async def _main(port: int) -> None:
    state = State()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Connection(state, reader, writer).serve()

    server = await asyncio.start_server(accept, "127.0.0.1", port, limit=LIMIT)
    await listening_on(server.sockets[0].getsockname()[1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(_main(parser.parse_args().port))
