"""A WebSocket server that sends back what it gets, and shows vLLM's two gauges; in the test's own loop.

At any path it takes a handshake; the text `close` has it close with 4321, `die` has it break off, and `flood`
has it send without end.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from aiohttp import WSMsgType, web

from standins.openai_server import metrics_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class EchoServer:
    """`seen` has the handshakes, `open` how many sockets there are now."""

    def __init__(self) -> None:
        self.seen: list[web.Request] = []
        self.open = 0
        self.running = 0
        """What the gauge of running requests says."""
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("chat",), max_msg_size=64 << 20)
        await socket.prepare(request)  # 400 for what is no handshake
        self.seen.append(request)
        self.open += 1
        try:
            async for message in socket:
                if message.data == "close":
                    await socket.close(code=4321, message=b"as told")
                elif message.data == "die":
                    assert request.transport is not None
                    request.transport.abort()
                elif message.data == "flood":
                    while True:
                        await socket.send_bytes(b"x" * 65_536)
                elif message.type is WSMsgType.TEXT:
                    await socket.send_str(message.data)
                else:
                    await socket.send_bytes(message.data)
        finally:
            self.open -= 1
        return socket

    async def metrics(self, _request: web.Request) -> web.Response:
        return web.Response(text=metrics_text(self.running))


@contextlib.asynccontextmanager
async def echoing() -> AsyncIterator[EchoServer]:
    """The server, for the length of the block."""
    server = EchoServer()
    app = web.Application()
    app.router.add_get("/metrics", server.metrics)
    app.router.add_get("/{path:.*}", server.socket)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()
