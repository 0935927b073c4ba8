"""The run: an agent lends this machine, a borrower is served, the owner returns, the borrower is refused."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp

from demo import parts
from demo.borrower import Borrower
from demo.parts import TryError
from demo.transcript import Transcript, indented, printable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

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
SHORT, LONG = 24, 6000
"""Tokens: of an answer that ends, and of one that the owner cuts."""
SHOWN_HEADERS = ("Retry-After", "X-Vacancy-Reason", "X-Should-Retry")


async def demonstrate(args: argparse.Namespace, out: Transcript) -> None:
    """The whole run; nothing is left running, however it ends."""
    async with contextlib.AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession(trust_env=False))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vacancy-try-")))
        out.step("A real llama-server")
        server = await stack.enter_async_context(parts.server(args.upstream, http))
        out.say(f"{server.url}: {server.what}")
        owner = await stack.enter_async_context(parts.owner(args.owner))

        out.step("A manifest, and an agent that lends this machine by it")
        began = time.monotonic()
        agent = await stack.enter_async_context(_agent(folder, server, owner, out))
        await parts.lends(agent, http)
        out.say(f"it lends after {time.monotonic() - began:.1f} s")

        def shown(text: str) -> str:
            return printable(text, ascii_only=server.is_nonsense)

        borrower = Borrower(agent, http)
        await _served(borrower, out, shown)
        await parts.is_free(agent, http)
        await _cut(borrower, agent, owner, out, shown)
        await _refused(borrower, out)
    out.say("\nNothing is left running.")


@contextlib.asynccontextmanager
async def _agent(
    folder: Path, server: parts.Server, owner: parts.Owner, out: Transcript
) -> AsyncIterator[parts.Running]:
    api, port = parts.free_ports(2)
    presence = "auto" if owner.bus else "headless"
    text = MANIFEST.format(presence=presence, target=server.origin, port=port, api=api)
    manifest = folder / "host.yaml"
    manifest.write_text(text, encoding="utf-8")
    out.say(text)
    out.say("$ vacancy agent --manifest host.yaml")
    async with parts.agent(folder, manifest, (api, port), owner.bus) as running:
        yield running


async def _served(borrower: Borrower, out: Transcript, shown: Callable[[str], str]) -> None:
    out.step("A borrower asks for a short answer, streamed")
    out.say(f"POST {borrower.url}")
    answer = await borrower.ask(SHORT)
    out.say(f"200 OK, first token after {_ms(answer.first_s)}, complete after {_ms(answer.whole_s)}:")
    out.say(f"  {shown(answer.text)}")


async def _cut(
    borrower: Borrower,
    agent: parts.Running,
    owner: parts.Owner,
    out: Transcript,
    shown: Callable[[str], str],
) -> None:
    out.step("A borrower is in the middle of a long answer when the owner returns")
    out.say(f"the owner returns by {owner.how}")
    pieces: list[str] = []
    returned = 0.0

    async def come_back() -> None:
        nonlocal returned
        await asyncio.sleep(SERVE_FOR_S)
        returned = time.monotonic()
        await owner.returns(agent)

    try:
        async with asyncio.TaskGroup() as group, borrower.stream(LONG) as stream:
            group.create_task(come_back())
            how = await _until_cut(stream, pieces)
            after = time.monotonic() - returned
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    out.say(f"{len(pieces)} tokens had come:")
    out.say(f"  {shown(''.join(pieces))}")
    out.say(f"the stream was cut {_ms(after)} after {owner.began} ({how} at the client)")


async def _until_cut(stream: AsyncIterator[str], pieces: list[str]) -> str:
    """Read until the agent cuts the stream; what the client saw."""
    try:
        async with asyncio.timeout(parts.RETURN_S):
            async for piece in stream:
                pieces.append(piece)  # noqa: PERF401 - what came before the cut counts
    except TimeoutError:
        raise TryError(f"the stream went on for {parts.RETURN_S:.0f} s: nothing was cut") from None
    except aiohttp.ClientError as error:
        return type(error).__name__
    raise TryError("the answer was complete before the owner came: nothing was cut")


async def _refused(borrower: Borrower, out: Transcript) -> None:
    out.step("The borrower asks again")
    out.say(f"POST {borrower.url}")
    refusal = await borrower.be_refused()
    out.say(f"{refusal.status}, after {_ms(refusal.after_s)}:")
    for name in SHOWN_HEADERS:
        if name in refusal.headers:
            out.say(f"  {name}: {refusal.headers[name]}")
    out.say("\n".join(f"  {line}" for line in indented(refusal.body).splitlines()))


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


async def _until_interrupted(args: argparse.Namespace) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    interrupted = False

    def stop() -> None:
        # Once: a second Ctrl-C must not interrupt the clearing up.
        nonlocal interrupted
        if not interrupted:
            interrupted = True
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop)
    await demonstrate(args, Transcript())


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="hack/try",
        description="See the main job done on this machine: an agent lends it, a borrower is served by a real"
        " llama-server, the owner returns, the stream is cut, the next request is refused with its reason. "
        "Nothing outside a temporary folder is written, and nothing is left running.",
    )
    parser.add_argument(
        "--upstream",
        metavar="URL",
        help=f"your own llama-server (default: the one at {parts.OWN_SERVER} if there is one, "
        "else one that is started here, on random weights)",
    )
    parser.add_argument(
        "--owner",
        choices=("auto", "logind", "switch"),
        default="auto",
        help="how the owner returns: logs in on a private systemd-logind (needs root), or says"
        " `vacancy pause`; auto: the first where it can run",
    )
    return parser.parse_args()


def main() -> int:
    args = parse()
    try:
        asyncio.run(_until_interrupted(args))
    except TryError as error:
        print(f"\nhack/try: {error}", file=sys.stderr)
        return 1
    except aiohttp.ClientError as error:
        print(f"\nhack/try: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except asyncio.CancelledError:
        print("\nhack/try: interrupted; nothing is left running", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
