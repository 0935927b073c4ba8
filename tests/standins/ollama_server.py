"""A stand-in for Ollama 0.17.4 with video memory: a program of its own on a real socket.

It gives the answers that were recorded from the real server (tests/fixtures/ollama), with models, contexts
and expiry of its own, and keeps to its rules of loading (see `ollama_runners`), in which every `Behaviour`
can be changed. Models: `small` (8 GiB), `tiny` (1 GiB) and `wide` (2 GiB, its Modelfile sets a context).

    with OllamaStandin() as server:
        server.behave(unload="stays", load_s=1.0)
        server.report()      # loaded, loads, working, vram_mib, asked

`smi`, an `NvidiaSmiLab`, makes the stand-in nvidia-smi show the memory that the loaded models leave.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from lab.nvidia_smi_lab import NvidiaSmiLab, device
from standins.ollama_runners import MIB, Behaviour, Model, Runners, seconds, timestamp
from standins.program import StandinProgram, serve_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from standins.ollama_runners import Runner

MODELS = (
    Model("small:latest", "df26617c545ca1df0eb4dc6530bba443a006b5c9ed586acf80cfe4fa6040b353", 8192 * MIB),
    Model("tiny:latest", "01634fd56d354308fb2f937bce697cc844d3371fc4403d64119c500b94950b63", 1024 * MIB),
    Model(
        "wide:latest", "5d416509faf18537c8f38d3733bfa4e01fa25a8a64942bd799cf8ff7ad3e81bf", 2048 * MIB, 1 << 20
    ),
)
CARD = "GPU-5eb0c0de-0000-4000-8000-00000000a11a"
CARD_MIB = 24564


class Server:
    """The routes."""

    def __init__(self, smi: Path | None) -> None:
        self._smi = NvidiaSmiLab(smi) if smi is not None else None
        self.runners = Runners({model.name: model for model in MODELS}, self._changed)
        self.asked: list[dict[str, Any]] = []
        self._changed(0)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_get("/", self.greet)
        app.router.add_get("/api/version", self.version)
        app.router.add_get("/api/tags", self.tags)
        app.router.add_get("/v1/models", self.v1_models)
        app.router.add_get("/api/ps", self.ps)
        app.router.add_post("/api/show", self.show)
        for path in ("/api/generate", "/api/chat", "/api/embed", "/api/embeddings"):
            app.router.add_post(path, self.native)
        for path in ("/v1/chat/completions", "/v1/completions", "/v1/embeddings"):
            app.router.add_post(path, self.v1)
        app.router.add_get("/_standin/report", self.report)
        app.router.add_put("/_standin/behaviour", self.behave)
        app.router.add_delete("/_standin/loaded", self.let_go)
        return app

    # Reads

    async def greet(self, _request: web.Request) -> web.Response:
        return web.Response(text="Ollama is running")

    async def version(self, _request: web.Request) -> web.Response:
        return web.json_response({"version": "0.17.4"})

    async def tags(self, _: web.Request) -> web.Response:
        rows = [
            {"name": model.name, "model": model.name, "digest": model.digest, "size": model.size}
            for model in self.runners.models.values()
        ]
        return web.json_response({"models": rows})

    async def v1_models(self, _: web.Request) -> web.Response:
        rows = [{"id": name, "object": "model", "owned_by": "library"} for name in self.runners.models]
        return web.json_response({"object": "list", "data": rows})

    async def ps(self, _: web.Request) -> web.Response:
        self.asked.append({"path": "/api/ps", "at": time.monotonic()})
        if self.runners.behaviour.ps == "hangs":
            await asyncio.sleep(3600)
        if self.runners.behaviour.ps == "broken":
            return web.Response(text="{")
        return web.json_response({"models": await self.runners.ps()})

    async def show(self, request: web.Request) -> web.Response:
        body = await self._body(request)
        model = self._model(body.get("model") or body.get("name"))
        if model is None:
            return self._missing(body)
        parameters = (
            "" if model.num_ctx is None else f"num_ctx                        {_go_float(model.num_ctx)}"
        )
        return web.json_response(
            {"modelfile": "FROM x", "template": "{{ .Prompt }}", "parameters": parameters}
        )

    # Work

    async def native(self, request: web.Request) -> web.StreamResponse:
        body = await self._body(request)
        model = self._model(body.get("model"))
        if model is None:
            return self._missing(body)
        chat = request.path == "/api/chat"
        empty = not body.get("messages" if chat else "prompt") and "input" not in body
        keep_alive = seconds(body.get("keep_alive"))
        if empty and keep_alive == 0:
            return await self._unload(model, body)
        options = body.get("options") or {}
        async with self.runners.use(model, options, keep_alive) as runner:
            if empty:
                return web.json_response(self._last(body, "load"))
            if "embed" in request.path:
                return web.json_response({"model": body["model"], "embeddings": [[0.1, 0.2]]})
            if body.get("stream") is False:
                text = [token async for token in self._tokens(runner, request, options)]
                return web.json_response({**self._last(body, "stop"), **_said(chat, "".join(text))})
            return await self._stream(request, self._ndjson(runner, request, body), "application/x-ndjson")

    async def v1(self, request: web.Request) -> web.StreamResponse:
        body = await self._body(request)
        model = self._model(body.get("model"))
        if model is None:
            return self._missing(body, v1=True)
        async with self.runners.use(model, {}, None) as runner:
            if request.path == "/v1/embeddings":
                return web.json_response(
                    {"object": "list", "data": [{"embedding": [0.1]}], "model": body["model"]}
                )
            wanted = {"num_predict": body["max_tokens"]} if body.get("max_tokens") else {}
            if body.get("stream"):
                return await self._stream(
                    request, self._sse(runner, request, body, wanted), "text/event-stream"
                )
            text = "".join([token async for token in self._tokens(runner, request, wanted)])
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            return web.json_response(
                {"object": "chat.completion", "model": body["model"], "choices": [choice]}
            )

    async def _unload(self, model: Model, body: dict[str, Any]) -> web.Response:
        self.runners.unload(model)
        if self.runners.behaviour.unload == "hangs":
            await asyncio.sleep(3600)
        return web.json_response(self._last(body, "unload"))

    async def _tokens(
        self, runner: Runner, request: web.Request, options: dict[str, Any]
    ) -> AsyncIterator[str]:
        rules = self.runners.behaviour
        async with self.runners.work():
            # The handler is cancelled when its client leaves; the work on a prompt goes on all the same.
            prompt = asyncio.ensure_future(self._prompt(rules.prompt_s))
            await asyncio.shield(prompt)
            for _ in range(int(options.get("num_predict", rules.tokens))):
                await asyncio.sleep(rules.every_s)
                yield "w "

    async def _prompt(self, lasts: float) -> None:
        if lasts:
            async with self.runners.work():
                await asyncio.sleep(lasts)

    async def _ndjson(
        self, runner: Runner, request: web.Request, body: dict[str, Any]
    ) -> AsyncIterator[bytes]:
        chat = request.path == "/api/chat"
        async for token in self._tokens(runner, request, body.get("options") or {}):
            row = {
                "model": body["model"],
                "created_at": timestamp(time.time()),
                **_said(chat, token),
                "done": False,
            }
            yield json.dumps(row).encode() + b"\n"
        yield json.dumps({**self._last(body, "stop"), **_said(chat, "")}).encode() + b"\n"

    async def _sse(
        self, runner: Runner, request: web.Request, body: dict[str, Any], options: dict[str, Any]
    ) -> AsyncIterator[bytes]:
        async for token in self._tokens(runner, request, options):
            choice = {"index": 0, "delta": {"role": "assistant", "content": token}, "finish_reason": None}
            row = {"object": "chat.completion.chunk", "model": body["model"], "choices": [choice]}
            yield b"data: " + json.dumps(row).encode() + b"\n\n"
        yield b"data: [DONE]\n\n"

    async def _stream(
        self, request: web.Request, rows: AsyncIterator[bytes], content_type: str
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": content_type})
        response.enable_chunked_encoding()
        started = False
        async for row in rows:
            if not started:
                await response.prepare(request)
                started = True
            await response.write(row)
        await response.write_eof()
        return response

    # What all share

    async def _body(self, request: web.Request) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(await request.read())
        self.asked.append({"path": request.path, "at": time.monotonic(), "body": body})
        return body

    def _model(self, name: object) -> Model | None:
        text = str(name).lower().removeprefix("registry.ollama.ai/").removeprefix("library/")
        return self.runners.models.get(text if ":" in text else f"{text}:latest")

    def _missing(self, body: dict[str, Any], *, v1: bool = False) -> web.Response:
        said = f"model '{body.get('model')}' not found"
        error = {"message": said, "type": "api_error", "param": None, "code": None} if v1 else said
        return web.json_response({"error": error}, status=404)

    def _last(self, body: dict[str, Any], reason: str) -> dict[str, Any]:
        now = timestamp(time.time())
        return {
            "model": body["model"],
            "created_at": now,
            "response": "",
            "done": True,
            "done_reason": reason,
        }

    def _changed(self, vram: int) -> None:
        if self._smi is not None:
            self._smi.devices(device(CARD, total=CARD_MIB, free=CARD_MIB - 400 - vram // MIB))

    # For the test

    async def report(self, _: web.Request) -> web.Response:
        found = {
            "loaded": await self.runners.ps() if not self.runners.behaviour.ps_blocks else [],
            "loads": self.runners.loads,
            "working": self.runners.working,
            "vram_mib": self.runners.vram // MIB,
            "asked": self.asked,
        }
        return web.json_response(found)

    async def behave(self, request: web.Request) -> web.Response:
        self.runners.behaviour = replace(Behaviour(), **await request.json())
        return web.json_response({})

    async def let_go(self, _: web.Request) -> web.Response:
        self.runners.let_go()
        return web.json_response({})


def _said(chat: bool, text: str) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text}} if chat else {"response": text}


def _go_float(number: int) -> str:
    """As Go prints a float: with an exponent from a million on."""
    text = f"{number:e}"
    digits, exponent = text.split("e")
    return str(number) if number < 10**6 else f"{float(digits):.10g}e{exponent}"


class OllamaStandin(StandinProgram):
    """The program as a test starts it: `with OllamaStandin() as server:`."""

    def __init__(self, smi: NvidiaSmiLab | None = None) -> None:
        self.smi = smi
        super().__init__("standins.ollama_server", *(() if smi is None else ("--smi", str(smi.folder))))

    def stop(self) -> None:
        """End it, with what it started."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        super().stop()

    def behave(self, **behaviour: object) -> None:
        """Be as new, but for these fields of `Behaviour`."""
        self.ask("PUT", "/_standin/behaviour", behaviour)

    def report(self) -> dict[str, Any]:
        """`loaded` (rows of /api/ps), `loads` so far, `working` now, `vram_mib`, `asked` (path, at, body)."""
        found: dict[str, Any] = self.ask("GET", "/_standin/report")
        return found

    def let_go(self) -> None:
        """Whatever is loaded is gone, as after an unload that took its time."""
        self.ask("DELETE", "/_standin/loaded")


async def _main(port: int, smi: Path | None) -> None:
    server = Server(smi)
    await serve_app(server.app(), port, cancels=True)
    server.runners.stop_burning()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--smi", type=Path)
    arguments = parser.parse_args()
    asyncio.run(_main(arguments.port, arguments.smi))
