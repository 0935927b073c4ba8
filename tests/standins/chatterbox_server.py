"""Two Chatterbox servers to stand in: programs of their own on real sockets, written from what was read.

`--kind travisvn` (chatterbox-tts-api a5f46612): `/v1/status` tells `is_processing`, `/status` is the health
body, `/audio/speech/long` answers with a job that goes on. `--kind devnen` (Chatterbox-TTS-Server 68213e75):
while it speaks, it answers nothing on any route, and it never notices a client that left. Both speak for the
request's `seconds`, and go on speaking for a client that left.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from typing import Any

from aiohttp import web

from standins.program import StandinProgram, serve_app

SOUND = b"RIFF" + bytes(1000)
KINDS = ("travisvn", "devnen")


class Chatterbox:
    """What both have; the kinds differ in `speak` and their routes."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.speaking = 0
        self.seen: list[dict[str, Any]] = []

    async def speech(self, request: web.Request) -> web.Response:
        text = await request.text()
        multipart = request.content_type == "multipart/form-data"
        seconds = 0.0 if multipart else float(json.loads(text).get("seconds", 0))
        self.speaking += 1
        try:
            if self.kind == "devnen":
                time.sleep(seconds)  # noqa: ASYNC251 - that is the point: the whole server hangs
            else:
                await asyncio.sleep(seconds)
        finally:
            self.speaking -= 1
        return web.Response(body=SOUND, content_type="audio/wav")

    async def long(self, _request: web.Request) -> web.Response:
        return web.json_response({"job_id": "7", "status": "pending"})

    async def status(self, _request: web.Request) -> web.Response:
        busy = self.speaking > 0
        return web.json_response({"is_processing": busy, "status": "generating" if busy else "idle"})

    async def health(self, _request: web.Request) -> web.Response:
        return web.json_response({"status": "healthy", "model_loaded": True})

    async def voices(self, _request: web.Request) -> web.Response:
        return web.json_response({"voices": []})

    @web.middleware
    async def note(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.seen.append({"method": request.method, "target": request.raw_path})
        return await handler(request)  # type: ignore[no-any-return]

    async def report(self, _request: web.Request) -> web.Response:
        return web.json_response({"seen": self.seen, "speaking": self.speaking})

    def routes(self, app: web.Application) -> None:
        app.router.add_post("/v1/audio/speech", self.speech)
        app.router.add_post("/tts", self.speech)
        app.router.add_get("/_standin/seen", self.report)
        if self.kind == "devnen":
            app.router.add_get("/api/model-info", self.health)
            app.router.add_get("/v1/audio/voices", self.voices)
            return
        app.router.add_post("/audio/speech", self.speech)
        app.router.add_post("/audio/speech/upload", self.speech)
        app.router.add_post("/audio/speech/long", self.long)
        app.router.add_get("/v1/status", self.status)
        for path in ("/status", "/health"):
            app.router.add_get(path, self.health)
        app.router.add_get("/voices", self.voices)


class ChatterboxStandin(StandinProgram):
    """The program as a test starts it: `with ChatterboxStandin("devnen") as server:`."""

    def __init__(self, kind: str) -> None:
        super().__init__("standins.chatterbox_server", "--kind", kind)

    def report(self) -> dict[str, Any]:
        """What came, and whether it speaks."""
        found: dict[str, Any] = self.ask("GET", "/_standin/seen")
        return found

    def seen(self, path: str) -> int:
        """How many requests came to this path."""
        return sum(entry["target"] == path for entry in self.report()["seen"])


async def _main(port: int, kind: str) -> None:
    server = Chatterbox(kind)
    app = web.Application(middlewares=[server.note], client_max_size=100 << 20)
    server.routes(app)
    await serve_app(app, port)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS, default=KINDS[0])
    arguments = parser.parse_args()
    asyncio.run(_main(arguments.port, arguments.kind))
