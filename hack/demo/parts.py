"""The parts of the demonstration: the server, the agent, the owner. Each is a context that leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from lab import llama_lab, logind_lab

OWN_SERVER = "http://127.0.0.1:8080"
READY_S = 20.0
RETURN_S = 10.0


class TryError(Exception):
    """The demonstration cannot go on; the message says what to do."""


@dataclass(frozen=True)
class Server:
    url: str
    what: str


@contextlib.asynccontextmanager
async def server(wanted: str | None, http: aiohttp.ClientSession) -> AsyncIterator[Server]:
    """The user's own llama-server where one answers, else one of ours."""
    found = wanted or OWN_SERVER
    model = await _model_of(found, http)
    if model is not None:
        yield Server(found, f"your own llama-server, model {model}")
        return
    if wanted is not None:
        raise TryError(f"no llama-server answers at {wanted}: is it running, and its model loaded?")
    lacking = llama_lab.missing()
    if lacking:
        raise TryError(f"{lacking}: install a llama-server and give --upstream URL")
    lab = llama_lab.LlamaLab(llama_lab.LabOptions(ctx=8192))
    try:
        await asyncio.to_thread(lab.start)
        yield Server(lab.url, "llama.cpp's own server on random weights: real, and it talks nonsense")
    finally:
        await asyncio.to_thread(lab.stop)


async def _model_of(url: str, http: aiohttp.ClientSession) -> str | None:
    """The model of a llama-server at `url`; None where there is none."""
    with contextlib.suppress(aiohttp.ClientError, TimeoutError, ValueError, KeyError, IndexError, TypeError):
        async with http.get(f"{url}/props", timeout=aiohttp.ClientTimeout(total=2)) as props:
            if props.status != 200 or "total_slots" not in await props.json():
                return None
        async with http.get(f"{url}/v1/models", timeout=aiohttp.ClientTimeout(total=2)) as models:
            return str((await models.json())["data"][0]["id"])
    return None


@dataclass(frozen=True)
class Running:
    api: str
    proxy: str
    borrow: str
    read: str
    state: Path
    log: Path


@contextlib.asynccontextmanager
async def agent(
    folder: Path, manifest: Path, ports: tuple[int, int], bus: str | None
) -> AsyncIterator[Running]:
    """`vacancy agent` as a process of its own."""
    state, log = folder / "state", folder / "agent.log"
    env = dict(os.environ)
    env.pop("DBUS_SYSTEM_BUS_ADDRESS", None)
    if bus is not None:
        env["DBUS_SYSTEM_BUS_ADDRESS"] = bus
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "vacancy_agent.cli", "agent"),
            *("--manifest", str(manifest), "--state-dir", str(state)),
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        api, proxy = (f"http://127.0.0.1:{port}" for port in ports)
        tokens = await _tokens(state, process, log)
        yield Running(api, proxy, tokens["borrow"], tokens["read"], state, log)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), 10)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _tokens(state: Path, process: asyncio.subprocess.Process, log: Path) -> dict[str, str]:
    import json

    for _ in range(int(READY_S / 0.05)):
        if process.returncode is not None:
            raise TryError(f"the agent ended:\n{log.read_text(errors='replace')[-2000:]}")
        with contextlib.suppress(OSError, ValueError):
            tokens: dict[str, str] = json.loads((state / "tokens.json").read_text())
            return tokens
        await asyncio.sleep(0.05)
    raise TryError(f"the agent made no tokens; its log: {log.read_text(errors='replace')[-2000:]}")


@dataclass(frozen=True)
class Owner:
    how: str
    bus: str | None
    returns: Callable[[Running], Awaitable[None]]


@contextlib.asynccontextmanager
async def owner(wanted: str) -> AsyncIterator[Owner]:
    """Someone who can come back: on a private systemd-logind, or with the switch."""
    lacking = logind_lab.missing() if wanted != "switch" else None
    if wanted == "logind" and lacking:
        raise TryError(
            f"a private systemd-logind lacks {lacking}: {logind_lab.INSTALL_HINT}; or --owner switch"
        )
    if wanted == "switch" or lacking:
        why = f" (a private systemd-logind lacks {lacking})" if lacking else ""
        yield Owner(f"the owner's switch, `vacancy pause`{why}", None, _pause)
        return
    async with logind_lab.LogindLab() as lab:

        async def log_in(_agent: Running) -> None:
            await lab.create(type="wayland", seat="seat0")

        yield Owner("a login on a real systemd-logind of its own (not this machine's)", lab.address, log_in)


async def _pause(running: Running) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "vacancy_agent.cli", "pause"),
        *("--api", running.api, "--state-dir", str(running.state)),
        stdout=asyncio.subprocess.DEVNULL,
    )
    if await process.wait() != 0:
        raise TryError("`vacancy pause` failed")


def free_ports(number: int) -> tuple[int, ...]:
    """Ports that nobody listens on just now."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return tuple(one.getsockname()[1] for one in sockets)
    finally:
        for one in sockets:
            one.close()
