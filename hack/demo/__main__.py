"""The transcript: an agent lends this machine, a borrower is served, the owner returns, the borrower is refused."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from demo import parts
from demo.parts import TryError

MANIFEST = """\
apiVersion: vacancy.dev/v1alpha1
kind: LendingHost
metadata: {{name: this-machine}}
spec:
  owner: {{presence: {presence}, releaseAfter: 1m}}
  resources:
    - name: ram
      type: memory
      capacity: {{minFreeMiB: 256}}
  upstreams:
    - name: llama
      dialect: llamacpp
      target: {target}
      port: {port}
      resource: ram
      onOwnerReturn: cancel
  access: {{listen: 127.0.0.1, apiPort: {api}}}
"""
SERVE_FOR_S = 0.7
SHOWN = 72


class Transcript:
    """What the user reads."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._step = 0

    def step(self, title: str) -> None:
        self._step += 1
        print(f"\n[{time.monotonic() - self._began:5.1f} s] {self._step}. {title}", flush=True)

    def say(self, text: str) -> None:
        for line in text.splitlines() or [""]:
            print(f"           {line}", flush=True)


async def demonstrate(args: argparse.Namespace) -> None:
    """The whole run."""
    out = Transcript()
    async with contextlib.AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession(trust_env=False))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vacancy-try-")))
        out.step("A real llama-server")
        server = await stack.enter_async_context(parts.server(args.upstream, http))
        out.say(f"{server.url}: {server.what}")
        owner = await stack.enter_async_context(parts.owner(args.owner))

        out.step("A manifest, and an agent that lends this machine by it")
        api, port = parts.free_ports(2)
        presence = "auto" if owner.bus else "headless"
        manifest = folder / "host.yaml"
        manifest.write_text(
            MANIFEST.format(presence=presence, target=_origin(server.url), port=port, api=api),
            encoding="utf-8",
        )
        out.say(manifest.read_text(encoding="utf-8"))
        began = time.monotonic()
        agent = await stack.enter_async_context(parts.agent(folder, manifest, (api, port), owner.bus))
        await _lendable(agent, http)
        out.say(f"$ vacancy agent --manifest host.yaml      lends after {time.monotonic() - began:.1f} s")

        out.step("A borrower asks for a short answer, streamed")
        text, first, whole = await _short(agent, http)
        out.say(f"POST {agent.proxy}/v1/chat/completions    200")
        out.say(f"first token after {first * 1000:.0f} ms, complete after {whole * 1000:.0f} ms: {text!r}")
        await _free(agent, http)

        out.step("A borrower is in the middle of a long answer when the owner returns")
        out.say(f"the owner returns by {owner.how}")
        await _cut(agent, owner, http, out)

        out.step("The borrower asks again")
        await _refused(agent, http, out)
    out.say("")
    out.say("Nothing is left running.")


async def _lendable(agent: parts.Running, http: aiohttp.ClientSession) -> None:
    for _ in range(int(parts.READY_S / 0.1)):
        upstream = await _upstream(agent, http)
        if upstream is not None and upstream["lendable"]:
            return
        await asyncio.sleep(0.1)
    raise TryError(f"the agent does not lend: {upstream}\n{agent.log.read_text(errors='replace')[-2000:]}")


async def _free(agent: parts.Running, http: aiohttp.ClientSession) -> None:
    """Wait until the job before is proved to have ended."""
    for _ in range(int(parts.READY_S / 0.1)):
        upstream = await _upstream(agent, http)
        if upstream is not None and not upstream["active"] and not upstream["held"]:
            return
        await asyncio.sleep(0.1)


async def _upstream(agent: parts.Running, http: aiohttp.ClientSession) -> dict[str, object] | None:
    with contextlib.suppress(aiohttp.ClientError):
        async with http.get(f"{agent.api}/status", headers=_bearer(agent.read)) as answer:
            status: dict[str, dict[str, list[dict[str, object]]]] = await answer.json()
            return status["agent"]["upstreams"][0]
    return None


async def _short(agent: parts.Running, http: aiohttp.ClientSession) -> tuple[str, float, float]:
    began = time.monotonic()
    first, pieces = 0.0, []
    async with http.post(_url(agent), headers=_bearer(agent.borrow), json=_question(24)) as answer:
        if answer.status != 200:
            raise TryError(f"the borrower was answered {answer.status}: {await answer.text()}")
        async for piece in _pieces(answer):
            first = first or time.monotonic() - began
            pieces.append(piece)
    return "".join(pieces)[:SHOWN], first, time.monotonic() - began


async def _cut(
    agent: parts.Running, owner: parts.Owner, http: aiohttp.ClientSession, out: Transcript
) -> None:
    pieces: list[str] = []
    returned = 0.0

    async def come_back() -> None:
        nonlocal returned
        await asyncio.sleep(SERVE_FOR_S)
        returned = time.monotonic()
        await owner.returns(agent)

    async with asyncio.TaskGroup() as group:
        async with http.post(_url(agent), headers=_bearer(agent.borrow), json=_question(6000)) as answer:
            if answer.status != 200:
                raise TryError(f"the borrower was answered {answer.status}: {await answer.text()}")
            coming = group.create_task(come_back())
            try:
                async with asyncio.timeout(parts.RETURN_S):
                    async for piece in _pieces(answer):
                        pieces.append(piece)
                raise TryError("the answer was complete before the owner came: nothing was cut")
            except aiohttp.ClientError as error:
                after = time.monotonic() - returned
                out.say(f"{len(pieces)} tokens had come: {''.join(pieces)[:SHOWN]!r}...")
                out.say(
                    f"the stream was cut {after * 1000:.0f} ms after the owner's return began ({_name(error)})"
                )
        await coming


async def _refused(agent: parts.Running, http: aiohttp.ClientSession, out: Transcript) -> None:
    began = time.monotonic()
    async with http.post(_url(agent), headers=_bearer(agent.borrow), json=_question(8)) as answer:
        body = await answer.text()
        out.say(f"{answer.status} {answer.reason} after {(time.monotonic() - began) * 1000:.0f} ms")
        for name in ("Retry-After", "X-Vacancy-Reason", "X-Should-Retry"):
            if name in answer.headers:
                out.say(f"{name}: {answer.headers[name]}")
        out.say(body)
        if answer.status != 503 or "X-Vacancy-Reason" not in answer.headers:
            raise TryError("that is not the refusal that was expected")


async def _pieces(answer: aiohttp.ClientResponse):
    async for line in answer.content:
        if line.startswith(b"data: {"):
            delta = json.loads(line[6:])["choices"][0]["delta"]
            if delta.get("content"):
                yield delta["content"]


def _question(tokens: int) -> dict[str, object]:
    ask = [{"role": "user", "content": "Tell me about idle machines."}]
    return {"messages": ask, "stream": True, "max_tokens": tokens, "ignore_eos": True}


def _url(agent: parts.Running) -> str:
    return f"{agent.proxy}/v1/chat/completions"


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _origin(url: str) -> str:
    parts_of = urlsplit(url)
    return f"{parts_of.scheme}://{parts_of.netloc}"


def _name(error: Exception) -> str:
    return f"the client saw {type(error).__name__}"


async def _until_interrupted(args: argparse.Namespace) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    await demonstrate(args)


def main() -> int:
    parser = argparse.ArgumentParser(prog="hack/try", description="An agent lends this machine: see it work.")
    parser.add_argument("--upstream", metavar="URL", help="your own llama-server")
    parser.add_argument(
        "--owner", choices=("auto", "logind", "switch"), default="auto", help="how the owner returns"
    )
    try:
        asyncio.run(_until_interrupted(parser.parse_args()))
    except TryError as error:
        print(f"hack/try: {error}", file=sys.stderr)
        return 1
    except asyncio.CancelledError:
        print("\ninterrupted; nothing is left running", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
