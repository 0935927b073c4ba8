"""The plain peer for delays: an aiohttp server that forwards with aiohttp's client, plainly written.

python -m benches.peer_aiohttp PORT TARGET_PORT
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import uvloop
from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

from benches.parts import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MAX_BODY = 128 << 20
SESSION: web.AppKey[ClientSession] = web.AppKey("session", ClientSession)


def proxy_to(target: int) -> web.Application:
    """The application; it opens its client on the running loop."""

    async def forward(request: web.Request) -> web.StreamResponse:
        url = f"http://{LOOPBACK}:{target}{request.path_qs}"
        headers = {"Content-Type": request.headers.get("Content-Type", "application/json")}
        body = await request.read()
        async with request.app[SESSION].request(request.method, url, headers=headers, data=body) as answer:
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            await response.write_eof()
            return response

    async def client(app: web.Application) -> AsyncIterator[None]:
        async with ClientSession(
            connector=TCPConnector(limit=0), timeout=ClientTimeout(total=None)
        ) as session:
            app[SESSION] = session
            yield

    app = web.Application(client_max_size=MAX_BODY)
    app.cleanup_ctx.append(client)
    app.router.add_route("*", "/{path:.*}", forward)
    return app


if __name__ == "__main__":
    uvloop.install()
    web.run_app(proxy_to(int(sys.argv[2])), host=LOOPBACK, port=int(sys.argv[1]), print=None, access_log=None)
