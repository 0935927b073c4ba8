"""The HTTP engine over real sockets: a running listener, upstreams that follow a script, raw clients."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any, Self

import pytest

from standins.http_engine import NotingApp
from vacancy_http import Listener, ListenerLimits, Upstream

if TYPE_CHECKING:
    import ssl as tls
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine


def _loops() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if sys.platform != "win32":
        import uvloop

        loops["uvloop"] = uvloop.new_event_loop
    return loops


LOOPS = _loops()


def on_each_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A component test that runs on the standard loop and on uvloop: their transports differ."""

    @functools.wraps(test)
    def run(loop_name: str, **arguments: Any) -> None:
        with asyncio.Runner(loop_factory=LOOPS[loop_name]) as runner:
            runner.run(test(**arguments))

    signature = inspect.signature(test)
    parameter = inspect.Parameter("loop_name", inspect.Parameter.KEYWORD_ONLY)
    parameters = [*signature.parameters.values(), parameter]
    vars(run)["__signature__"] = signature.replace(parameters=parameters)
    del run.__wrapped__
    marked: Callable[..., None] = pytest.mark.parametrize("loop_name", list(LOOPS))(run)
    return pytest.mark.component(marked)


@contextlib.asynccontextmanager
async def running(
    upstream: Upstream,
    limits: ListenerLimits | None = None,
    ssl: tls.SSLContext | None = None,
) -> AsyncIterator[tuple[Listener, NotingApp]]:
    """A listener on loopback with an application that notes all."""
    app = NotingApp(upstream)
    listener = Listener(app, host="127.0.0.1", port=0, limits=limits or ListenerLimits(), ssl=ssl)
    await listener.start()
    try:
        yield listener, app
    finally:
        await listener.close(0)
        upstream.close()
        await asyncio.sleep(0.02)


class UpstreamPeer:
    """One connection as the upstream's script has it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def request(self) -> bytes:
        """The next request's head and body (by its Content-Length)."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line[15:])
        return head + (await self.reader.readexactly(length) if length else b"")

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    async def closed(self, within_s: float) -> bool:
        """Whether the other side closes within that time."""
        try:
            async with asyncio.timeout(within_s):
                while await self.reader.read(65536):
                    pass
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True


class ScriptedUpstream:
    """An upstream that runs a script for each connection."""

    def __init__(self, script: Callable[[UpstreamPeer], Awaitable[None]]) -> None:
        self.script = script
        self.connections = 0
        self.port = 0
        self.failures: list[BaseException] = []
        self._server: asyncio.Server | None = None
        self._running: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 20)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        assert not self.failures, self.failures

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            await self.script(UpstreamPeer(reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        except Exception as error:  # noqa: BLE001 - shown when the test ends
            self.failures.append(error)
        finally:
            self._running.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()


async def raw_request(port: int, data: bytes, ssl: tls.SSLContext | None = None) -> bytes:
    """Send `data`; the reply, by its Content-Length or up to the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=ssl)
    try:
        writer.write(data)
        return await read_reply(reader)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def read_reply(reader: asyncio.StreamReader) -> bytes:
    """One reply, by its Content-Length or up to the end of the connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return head + await reader.readexactly(int(line[15:]))
    return head + await reader.read()


@contextlib.asynccontextmanager
async def client(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to the listener."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
