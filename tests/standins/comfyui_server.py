"""A stand-in for ComfyUI: a program of its own on a real socket, with a queue that runs.

It replays 0.3.64 and 0.28.1 (recorded on a CPU): their answers come from `tests/fixtures/comfyui`, and what
changed between releases changes at the release it pretends to be (`--release`, any). A prompt takes the sum
of its nodes' inputs `seconds`. It shows, as seen on the real ones:

* ids: before 0.3.45 it assigns its own; one that is used twice is accepted; from 0.25.0 only canonical UUIDs;
* `/interrupt` sets one flag for whatever runs: with `race_s` it arrives that much after the id was compared;
* deleting from the queue is a silent 200 whatever matched, and does not touch what runs;
* `POST /api/jobs/{id}/cancel` (0.26.0) stops that prompt or nothing;
* `/free` only sets flags, which are applied when nothing runs (never with `free` false);
* a client that leaves ends no job; another `Origin` than its own host is refused, and from 0.28.1 on a
  cross-site request, too;
* `/ws` with a client id that is in use takes the place of its socket.

Put to `/_standin/behaviour`: `enqueue_s` (before a prompt is in the queue), `reply_s` (from then to the
answer), `race_s`, `free`, `device` (`cuda`), `torch` (bytes its allocator holds), `hang` (paths that never
answer). `GET /_standin/seen` lists what came and what ended how.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from standins.comfyui_recorded import NEW, OLD, body, recorded
from standins.program import serve_app

STEP_S = 0.02
LEFT = 64 << 20
"""Bytes that an allocator keeps after everything was unloaded."""


@dataclass(order=True)
class Item:
    number: float
    order: int
    prompt_id: str = field(compare=False)
    graph: dict[str, Any] = field(compare=False)
    extra: dict[str, Any] = field(compare=False)

    def shown(self) -> list[Any]:
        return [self.number, self.prompt_id, self.graph, self.extra, ["2"]]

    @property
    def seconds(self) -> float:
        return sum(float(node.get("inputs", {}).get("seconds", 0)) for node in self.graph.values())


class Comfy:
    """The server's state. One worker runs the queue; everything is on one loop, like in the original."""

    def __init__(self, release: str) -> None:
        self.release = tuple(int(part) for part in release.split("."))
        self.version = release
        self.recorded = NEW if self.release >= (0, 6, 0) else OLD
        self.behaviour: dict[str, Any] = {
            "enqueue_s": 0, "reply_s": 0, "race_s": 0, "free": True, "device": "cpu", "torch": 0, "hang": []
        }  # fmt: skip
        self.queue: list[Item] = []
        self.running: Item | None = None
        self.history: dict[str, Any] = {}
        self.interrupted = False
        self.flags = False
        self.count = 0
        self.changed = asyncio.Event()
        self.sockets: dict[str, web.WebSocketResponse] = {}
        self.seen: list[dict[str, Any]] = []

    def answer(self, name: str) -> web.Response:
        """A recorded answer."""
        response = recorded(self.recorded, name)["response"]
        kind = response["headers"].get("Content-Type", "application/octet-stream").partition(";")[0]
        return web.Response(status=response["status"], body=body(self.recorded, name), content_type=kind)

    # The worker.

    async def work(self) -> None:
        while True:
            while not self.queue:
                self.apply_flags()
                self.changed.clear()
                await self.changed.wait()
            self.running = item = heapq.heappop(self.queue)
            self.interrupted = False
            status = await self.execute(item)
            self.running = None
            self.history[item.prompt_id] = {"prompt": item.shown(), "outputs": {}, "status": status}
            self.apply_flags()

    async def execute(self, item: Item) -> dict[str, Any]:
        self.behaviour["torch"] = max(self.behaviour["torch"], 8 << 30)
        await self.tell(item, "execution_start")
        left = item.seconds
        while left > 0 and not self.interrupted:
            await asyncio.sleep(min(STEP_S, left))
            left -= STEP_S
        how = "execution_interrupted" if self.interrupted else "execution_success"
        self.seen.append({"event": how, "prompt_id": item.prompt_id})
        await self.tell(item, how)
        done = not self.interrupted
        return {"status_str": "success" if done else "error", "completed": done, "messages": [[how, {}]]}

    def apply_flags(self) -> None:
        if self.flags and self.behaviour["free"]:
            self.behaviour["torch"] = min(self.behaviour["torch"], LEFT)
        self.flags = False

    async def tell(self, item: Item, kind: str) -> None:
        client = item.extra.get("client_id")
        to = list(self.sockets.values()) if client is None else [self.sockets.get(client)]
        for socket in to:
            if socket is not None and not socket.closed:
                await socket.send_json({"type": kind, "data": {"prompt_id": item.prompt_id}})

    # What a client asks.

    async def submit(self, request: web.Request) -> web.Response:
        try:
            said = json.loads(await request.text())
        except ValueError:
            return self.answer("prompt_bad_json")
        if "prompt" not in said:
            return self.answer("prompt_no_prompt")
        if any(node.get("class_type") == "Nope" for node in said["prompt"].values()):
            return self.answer("prompt_invalid_node")
        prompt_id = self.id_of(said)
        if prompt_id is None:
            return self.answer("prompt_bad_prompt_id")
        extra = dict(said.get("extra_data", {}))
        if "client_id" in said:
            extra["client_id"] = said["client_id"]
        await asyncio.sleep(self.behaviour["enqueue_s"])
        self.count += 1
        number = float(said.get("number", -self.count if said.get("front") else self.count))
        heapq.heappush(self.queue, Item(number, self.count, prompt_id, said["prompt"], extra))
        self.changed.set()
        await asyncio.sleep(self.behaviour["reply_s"])
        return web.json_response({"prompt_id": prompt_id, "number": number, "node_errors": {}})

    def id_of(self, said: dict[str, Any]) -> str | None:
        wanted = said.get("prompt_id")
        if self.release < (0, 3, 45):
            return str(uuid.uuid4())
        if self.release < (0, 25, 0):
            return str(said.get("prompt_id", uuid.uuid4()))
        if wanted is None:
            return str(uuid.uuid4())
        try:
            return wanted if str(uuid.UUID(wanted)) == wanted else None
        except (ValueError, AttributeError):
            return None

    async def interrupt(self, request: web.Request) -> web.Response:
        text = await request.text()
        wanted = json.loads(text).get("prompt_id") if text else None
        by_id = wanted is not None and self.release >= (0, 3, 57)
        if not by_id or (self.running is not None and self.running.prompt_id == wanted):
            await asyncio.sleep(self.behaviour["race_s"])
            self.interrupted = True
        return web.Response()

    async def change_queue(self, request: web.Request) -> web.Response:
        said = await request.json()
        gone = set(said.get("delete", ()))
        self.queue = [item for item in self.queue if item.prompt_id not in gone and not said.get("clear")]
        heapq.heapify(self.queue)
        return web.Response()

    async def cancel(self, request: web.Request) -> web.Response:
        wanted = request.match_info["id"]
        if self.running is not None and self.running.prompt_id == wanted:
            self.interrupted = True
            return web.json_response({"cancelled": True})
        pending = [item for item in self.queue if item.prompt_id == wanted]
        for item in pending:
            self.queue.remove(item)
        heapq.heapify(self.queue)
        return web.json_response({"cancelled": bool(pending)})

    async def free(self, request: web.Request) -> web.Response:
        if not await request.text():
            return self.answer("free_bad")
        self.flags = True
        self.changed.set()
        if self.running is None and not self.queue:
            self.apply_flags()
        return web.Response()

    async def show_queue(self, _request: web.Request) -> web.Response:
        running = [] if self.running is None else [self.running.shown()]
        pending = [item.shown() for item in sorted(self.queue)]
        return web.json_response({"queue_running": running, "queue_pending": pending})

    async def remaining(self, _request: web.Request) -> web.Response:
        left = len(self.queue) + (self.running is not None)
        return web.json_response({"exec_info": {"queue_remaining": left}})

    async def show_history(self, request: web.Request) -> web.Response:
        wanted = request.match_info["id"]
        return web.json_response({wanted: self.history[wanted]} if wanted in self.history else {})

    async def job(self, request: web.Request) -> web.Response:
        wanted = request.match_info["id"]
        if wanted in self.history:
            done = self.history[wanted]["status"]["completed"]
            return web.json_response({"id": wanted, "status": "completed" if done else "cancelled"})
        if self.running is not None and self.running.prompt_id == wanted:
            return web.json_response({"id": wanted, "status": "in_progress", "priority": 1})
        if any(item.prompt_id == wanted for item in self.queue):
            return web.json_response({"id": wanted, "status": "pending", "priority": 1})
        return self.answer("jobs_unknown")

    async def stats(self, _request: web.Request) -> web.Response:
        document = json.loads(body(self.recorded, "system_stats"))
        document["system"]["comfyui_version"] = self.version
        if self.behaviour["device"] == "cuda":
            held = self.behaviour["torch"]
            card = {"name": "cuda:0", "type": "cuda", "index": 0, "vram_total": 24 << 30}
            card |= {"vram_free": (24 << 30) - held, "torch_vram_total": held, "torch_vram_free": 0}
            document["devices"] = [card]
        return web.json_response(document)

    async def listen(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        sid = request.query.get("clientId", "") or uuid.uuid4().hex
        self.sockets[sid] = socket
        await socket.send_json({"type": "status", "data": {"sid": sid}})
        async for _ in socket:
            pass
        if self.sockets.get(sid) is socket:
            del self.sockets[sid]
        return socket

    def fixed(self, name: str) -> Any:
        async def handler(_request: web.Request) -> web.Response:
            return self.answer(name)

        return handler

    # The stand-in's own.

    @web.middleware
    async def guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if request.path.startswith("/_standin/"):
            return await handler(request)  # type: ignore[no-any-return]
        text = "" if request.method in {"GET", "HEAD"} else (await request.read()).decode("latin-1")
        entry = {
            "method": request.method,
            "target": request.raw_path,
            "headers": list(request.headers.items()),
        }
        self.seen.append(entry | {"body": text[:100_000]})
        origin = request.headers.get("Origin")
        if origin is not None and origin.rpartition("/")[2] != request.host:
            return web.Response(status=403)
        if request.headers.get("Sec-Fetch-Site") == "cross-site" and self.release >= (0, 28, 1):
            return web.Response(status=403)
        if request.path in self.behaviour["hang"]:
            await asyncio.sleep(3600)
        return await handler(request)  # type: ignore[no-any-return]

    async def behave(self, request: web.Request) -> web.Response:
        self.behaviour |= await request.json()
        return web.Response()

    async def report(self, _request: web.Request) -> web.Response:
        return web.json_response({"seen": self.seen, "torch": self.behaviour["torch"]})

    def routes(self, app: web.Application) -> None:
        both = [
            ("POST", "/prompt", self.submit), ("GET", "/prompt", self.remaining),
            ("POST", "/interrupt", self.interrupt), ("POST", "/queue", self.change_queue),
            ("GET", "/queue", self.show_queue), ("GET", "/history/{id}", self.show_history),
            ("POST", "/free", self.free), ("GET", "/system_stats", self.stats), ("GET", "/ws", self.listen),
            ("GET", "/object_info/{node}", self.fixed("object_info_one")),
            ("GET", "/models", self.fixed("models")), ("GET", "/features", self.fixed("features")),
            ("GET", "/view", self.fixed("view_missing")), ("POST", "/upload/image", self.uploaded),
        ]  # fmt: skip
        for method, path, handler in both:
            for prefix in ("", "/api"):
                app.router.add_route(method, prefix + path, handler)
        if self.release >= (0, 6, 0):
            app.router.add_get("/api/jobs/{id}", self.job)
        if self.release >= (0, 26, 0):
            app.router.add_post("/api/jobs/{id}/cancel", self.cancel)
        app.router.add_put("/_standin/behaviour", self.behave)
        app.router.add_get("/_standin/seen", self.report)

    async def uploaded(self, _request: web.Request) -> web.Response:
        return web.json_response({"name": "a.png", "subfolder": "", "type": "input"})


async def _main(port: int, release: str) -> None:
    comfy = Comfy(release)
    app = web.Application(middlewares=[comfy.guard], client_max_size=100 << 20)
    comfy.routes(app)
    worker = asyncio.create_task(comfy.work())
    await serve_app(app, port)
    worker.cancel()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--release", default=NEW)
    arguments = parser.parse_args()
    asyncio.run(_main(arguments.port, arguments.release))
