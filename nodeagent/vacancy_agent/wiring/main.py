"""The process around one agent: event loop, signals, API server, and the manifest that may change."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from typing import TYPE_CHECKING

from vacancy_agent.clock import SystemClock
from vacancy_agent.store.errors import StoreError
from vacancy_agent.store.state import StateDir, default_state_dir
from vacancy_agent.wiring import tell as log
from vacancy_agent.wiring.agent import Agent
from vacancy_agent.wiring.api_server import ApiServer
from vacancy_agent.wiring.config import UnservedError, alone, fingerprint
from vacancy_api.problems import ContractInvalid

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path
    from typing import Any

    from vacancy_agent.store.state import Tokens
    from vacancy_agent.wiring.config import Configuration

LOOK_S = 2.0
"""Between two looks at the manifest."""


class StartError(Exception):
    """The agent cannot start; one line for each reason."""

    def __init__(self, lines: list[str], *, input_is_wrong: bool) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines
        self.input_is_wrong = input_is_wrong


def main(manifest: Path, state_dir: Path | None, *, quiet: bool = False) -> int:
    """Run an agent from a manifest until a signal ends it.

    Raises:
        StartError: it cannot start.
    """
    log.set_up(logging.WARNING if quiet else logging.INFO)
    try:
        state = StateDir(state_dir or default_state_dir())
    except StoreError as error:
        raise StartError([str(error)], input_is_wrong=False) from error
    try:
        tokens = state.tokens()
        config = load(manifest, tokens)
        loop_run(_serve(manifest, config, state, tokens))
    except StoreError as error:
        raise StartError([str(error)], input_is_wrong=False) from error
    finally:
        state.close()
    return 0


def load(manifest: Path, tokens: Tokens) -> Configuration:
    """The configuration in a manifest.

    Raises:
        StartError: with every reason why it is refused.
    """
    try:
        return alone(manifest, tokens)
    except ContractInvalid as error:
        lines = [f"{manifest}: {one}" for one in error.errors]
        raise StartError(lines, input_is_wrong=True) from error
    except UnservedError as error:
        raise StartError([f"{manifest}: {one}" for one in error.errors], input_is_wrong=True) from error


def loop_run(work: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop where there is one."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if sys.platform != "win32":
        with contextlib.suppress(ModuleNotFoundError):
            import uvloop  # noqa: PLC0415 - not on every platform

            factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(work)


async def _serve(manifest: Path, config: Configuration, state: StateDir, tokens: Tokens) -> None:
    agent = Agent(config, state, SystemClock(), log.tell)
    if agent.store.set_aside is not None:
        log.tell("store set aside", file=agent.store.set_aside, lost="switches made here, usage")
    log.tell("tokens made" if tokens.created else "tokens", file=tokens.path)
    stop, again = asyncio.Event(), asyncio.Event()
    _on_signals(stop, again)
    agent.api = api = ApiServer(agent, state)
    errors = await api.follow(config.access)
    if errors:
        raise StartError(errors, input_is_wrong=False)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(agent.run()),
                group.create_task(_reload(manifest, agent, tokens, again)),
            ]
            await stop.wait()
            log.tell("stopping")
            for task in tasks:
                task.cancel()
    finally:
        await api.close()


def _on_signals(stop: asyncio.Event, again: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":
        signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(stop.set))
    else:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        loop.add_signal_handler(signal.SIGHUP, again.set)


async def _reload(manifest: Path, agent: Agent, tokens: Tokens, again: asyncio.Event) -> None:
    """Apply the manifest when it changed, or on SIGHUP; a file that is gone just now changes nothing."""
    seen = fingerprint(manifest)
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                await again.wait()
        current = fingerprint(manifest)
        if current is None or (current == seen and not again.is_set()):
            again.clear()
            continue
        again.clear()
        seen = current
        try:
            config = load(manifest, tokens)
        except StartError as error:
            agent.refuse_config(error.lines)
        else:
            await agent.apply(config)
