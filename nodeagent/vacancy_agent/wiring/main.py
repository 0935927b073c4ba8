"""The process around one agent: event loop, signals, API server, and the manifest that may change."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING

from vacancy_agent.clock import SystemClock
from vacancy_agent.platform.file_limit import raise_file_limit
from vacancy_agent.store.errors import StoreError
from vacancy_agent.store.state import StateDir, default_state_dir
from vacancy_agent.wiring import secret_files
from vacancy_agent.wiring import tell as log
from vacancy_agent.wiring.agent import Agent
from vacancy_agent.wiring.api_server import ApiServer
from vacancy_agent.wiring.config import RefusedError, content_of
from vacancy_agent.wiring.contract_apart import JudgeError, judge
from vacancy_agent.wiring.reload import Reload
from vacancy_agent.wiring.supervise import PartEndedError, essential, leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path
    from typing import Any

    from vacancy_agent.store.state import Tokens
    from vacancy_agent.wiring.config import Configuration


class StartError(Exception):
    """The agent cannot start, or cannot go on; one line for each reason."""

    def __init__(self, lines: list[str], *, input_is_wrong: bool) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines
        self.input_is_wrong = input_is_wrong


def main(manifest: Path, state_dir: Path | None, *, quiet: bool = False) -> int:
    """Run an agent from a manifest until a signal ends it.

    Raises:
        StartError: it cannot start, or the state directory fails it.
        ExceptionGroup: a part of it failed.
    """

    def work(state: StateDir) -> Coroutine[Any, Any, None]:
        tokens = state.tokens()
        content, config = _load(manifest, state, tokens)
        return _serve(config, Reload(manifest, content, state, tokens))

    return process(work, state_dir, quiet=quiet)


def process(
    work: Callable[[StateDir], Coroutine[Any, Any, None]], state_dir: Path | None, *, quiet: bool
) -> int:
    """Do the work with a state directory; returns the exit code.

    Raises:
        StartError: it cannot start, or the state directory fails it.
        ExceptionGroup: a part of it failed.
    """
    log.set_up(logging.WARNING if quiet else logging.INFO)
    raise_file_limit()
    try:
        state = StateDir(state_dir or default_state_dir())
        try:
            lending = work(state)
            # What was imported stays for good: 70,000 objects, over which a full collection would stop every
            # stream for 30 ms. A request leaves nothing to collect, so the thresholds stay as they are.
            gc.collect()
            gc.freeze()
            loop_run(lending)
        finally:
            state.close()
    except StoreError as error:
        raise StartError([str(error)], input_is_wrong=False) from error
    except ExceptionGroup as group:
        lines = _sentences(group)
        if lines is None:
            raise
        if group.split(StoreError)[1] is not None:
            log.LOGGER.error("a part of the agent has ended", exc_info=group)
        raise StartError(lines, input_is_wrong=False) from group
    return 0


def loop_run(work: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop where there is one."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if sys.platform != "win32":
        with contextlib.suppress(ModuleNotFoundError):
            import uvloop  # noqa: PLC0415 - not on every platform

            factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(work)


def _load(manifest: Path, state: StateDir, tokens: Tokens) -> tuple[bytes, Configuration]:
    try:
        content = content_of(manifest)
        config = judge(content, tokens)
        errors = secret_files.problems(config, state)
    except RefusedError as error:
        errors = error.errors
    except JudgeError as error:
        raise StartError([f"{manifest}: {error}"], input_is_wrong=False) from error
    if errors:
        raise StartError([f"{manifest}: {one}" for one in errors], input_is_wrong=True)
    return content, config


async def _serve(config: Configuration, reload: Reload) -> None:
    agent = Agent(config, reload.state, SystemClock(), log.tell)
    agent.api = api = ApiServer(agent, reload.state)
    try:
        if agent.store.set_aside is not None:
            log.tell("store set aside", file=agent.store.set_aside, lost="switches made here, usage")
        log.tell("tokens made" if reload.tokens.created else "tokens", file=reload.tokens.path)
        stop = asyncio.Event()
        on_signals(stop, reload.asked)
        errors = await api.follow(config.access)
        if errors:
            raise StartError(errors, input_is_wrong=False)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(agent.run()),
                group.create_task(essential("the look at the manifest", partial(reload.run, agent))),
            ]
            await stop.wait()
            log.tell("stopping")
            await api.close()
            for task in tasks:
                task.cancel()
    finally:
        await api.close()
        await agent.close()


def on_signals(stop: asyncio.Event, again: asyncio.Event) -> None:
    """Set `stop` on SIGTERM and SIGINT, `again` on SIGHUP."""
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":
        signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(stop.set))
    else:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        loop.add_signal_handler(signal.SIGHUP, again.set)


def _sentences(group: BaseExceptionGroup[BaseException]) -> list[str] | None:
    """The words of what failed, where all of it has words for people; None: something else did."""
    errors = list(leaves(group))
    told = all(isinstance(one, StoreError | PartEndedError) for one in errors)
    return list(dict.fromkeys(map(str, errors))) if told else None
