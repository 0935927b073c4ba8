"""The parts of the run: the server, the agent, the owner. Each is a context that leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp

from lab import llama_lab, logind_lab

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

OWN_SERVER = "http://127.0.0.1:8080"
READY_S = 20.0
RETURN_S = 20.0
FIRST_LOOK = aiohttp.ClientTimeout(total=2)


class TryError(Exception):
    """The demonstration cannot go on; the message says what to do."""


@dataclass(frozen=True)
class Server:
    url: str
    what: str
    is_nonsense: bool

    @property
    def origin(self) -> str:
        url = urlsplit(self.url)
        return f"{url.scheme}://{url.netloc}"


@contextlib.asynccontextmanager
async def server(wanted: str | None, http: aiohttp.ClientSession) -> AsyncIterator[Server]:
    """The user's own llama-server where one answers, else one of ours."""
    found = (wanted or OWN_SERVER).rstrip("/")
    model = await _model_of(found, http)
    if model is not None:
        yield Server(found, f"your own llama-server, model {model}", is_nonsense=False)
        return
    if wanted is not None:
        raise TryError(f"no llama-server answers at {wanted}: is it running, and its model loaded?")
    lacking = llama_lab.missing()
    if lacking:
        raise TryError(f"{lacking}: install a llama-server and give --upstream URL")
    lab = llama_lab.LlamaLab(llama_lab.LabOptions(ctx=8192))
    try:
        await asyncio.to_thread(lab.start)
        what = "llama.cpp's own server on random weights: real, and it talks nonsense"
        yield Server(lab.url, what, is_nonsense=True)
    finally:
        await asyncio.to_thread(lab.stop)


async def _model_of(url: str, http: aiohttp.ClientSession) -> str | None:
    """The model of a llama-server at `url`; None where there is none."""
    nothing = (aiohttp.ClientError, TimeoutError, ValueError, KeyError, IndexError, TypeError)
    with contextlib.suppress(*nothing):
        async with http.get(f"{url}/props", timeout=FIRST_LOOK) as props:
            if props.status != 200 or "total_slots" not in await props.json():
                return None
        async with http.get(f"{url}/v1/models", timeout=FIRST_LOOK) as models:
            return str((await models.json())["data"][0]["id"])
    return None


@dataclass(frozen=True)
class Running:
    process: asyncio.subprocess.Process
    api: str
    proxy: str
    borrow: str
    read: str
    state: Path
    log: Path

    def log_end(self) -> str:
        return _end_of(self.log)


@contextlib.asynccontextmanager
async def agent(
    folder: Path, manifest: Path, ports: tuple[int, int], bus: str | None
) -> AsyncIterator[Running]:
    """`vacancy agent` as a process of its own."""
    state, log = folder / "state", folder / "agent.log"
    process = await _start(["--manifest", str(manifest), "--state-dir", str(state)], bus, log)
    try:
        api, proxy = (f"http://127.0.0.1:{port}" for port in ports)
        tokens = await _tokens(state, process, log)
        yield Running(process, api, proxy, tokens["borrow"], tokens["read"], state, log)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), 10)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _start(arguments: list[str], bus: str | None, log: Path) -> asyncio.subprocess.Process:
    env = dict(os.environ)
    env.pop("DBUS_SYSTEM_BUS_ADDRESS", None)
    if bus is not None:
        env["DBUS_SYSTEM_BUS_ADDRESS"] = bus
    command = [sys.executable, "-m", "vacancy_agent.cli", "agent", *arguments]
    if shutil.which("setpriv") is not None:  # so that it ends with us even when we are killed
        command = ["setpriv", "--pdeathsig", "TERM", *command]
    with log.open("wb") as output:
        # A session of its own: Ctrl-C is for us, and the agent is ended in order.
        return await asyncio.create_subprocess_exec(
            *command,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


async def _tokens(state: Path, process: asyncio.subprocess.Process, log: Path) -> dict[str, str]:
    for _ in range(int(READY_S / 0.05)):
        _check_alive(process, log)
        with contextlib.suppress(OSError, ValueError):
            tokens: dict[str, str] = json.loads((state / "tokens.json").read_text())
            return tokens
        await asyncio.sleep(0.05)
    raise TryError(f"the agent made no tokens; its log:\n{_end_of(log)}")


async def lends(agent: Running, http: aiohttp.ClientSession) -> None:
    """Wait until the agent would admit a request."""
    await _until(agent, http, lambda upstream: upstream["lendable"], "does not lend")


async def is_free(agent: Running, http: aiohttp.ClientSession) -> None:
    """Wait until the job before is proved to have ended."""
    await _until(
        agent,
        http,
        lambda upstream: not upstream["active"] and not upstream["held"],
        "holds the slot of the answer before",
    )


async def _until(
    agent: Running, http: aiohttp.ClientSession, wanted: Callable[[dict[str, Any]], bool], complaint: str
) -> None:
    upstream: dict[str, Any] = {}
    for _ in range(int(READY_S / 0.1)):
        _check_alive(agent.process, agent.log)
        with contextlib.suppress(aiohttp.ClientError):
            headers = {"Authorization": f"Bearer {agent.read}"}
            async with http.get(f"{agent.api}/status", headers=headers) as answer:
                upstream = (await answer.json())["agent"]["upstreams"][0]
            if wanted(upstream):
                return
        await asyncio.sleep(0.1)
    raise TryError(f"the agent {complaint} ({upstream.get('reason')}); its log:\n{agent.log_end()}")


def _check_alive(process: asyncio.subprocess.Process, log: Path) -> None:
    if process.returncode is not None:
        raise TryError(f"the agent ended with code {process.returncode}:\n{_end_of(log)}")


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:]


@dataclass(frozen=True)
class Owner:
    how: str
    began: str
    """What the time until the cut is counted from."""
    bus: str | None
    returns: Callable[[Running], Awaitable[None]]


@contextlib.asynccontextmanager
async def owner(wanted: str) -> AsyncIterator[Owner]:
    """Someone who can come back: on a private systemd-logind, or with the switch."""
    lacking = logind_lab.missing() if wanted != "switch" else None
    if wanted == "logind" and lacking:
        raise TryError(
            f"a private systemd-logind would need {lacking}: {logind_lab.INSTALL_HINT}; or --owner switch"
        )
    if wanted == "switch" or lacking:
        why = f" (a private systemd-logind would need {lacking})" if lacking else ""
        began = "`vacancy pause` was started, most of it the start of that command"
        yield Owner(f"the owner's switch, `vacancy pause`{why}", began, None, _pause)
        return
    async with logind_lab.LogindLab() as lab:

        async def log_in(_agent: Running) -> None:
            await lab.create(type="wayland", seat="seat0")

        how = "logging in on a real systemd-logind of its own (not this machine's)"
        yield Owner(how, "logind was asked to log the owner in", lab.address, log_in)


async def _pause(running: Running) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "vacancy_agent.cli", "pause"),
        *("--api", running.api, "--state-dir", str(running.state)),
        stdout=asyncio.subprocess.DEVNULL,
        start_new_session=True,
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
