"""Blocking calls beside the loop, in threads that cannot hold up the agent's exit.

Invariant: of one kind of call at most one runs, however long it hangs, and none keeps the process alive.
`asyncio.to_thread` is rejected: its pool fills up with hung calls until presence itself waits for a thread,
and the interpreter joins it at exit.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_agent.core.facts import Seconds

T = TypeVar("T")


class StuckError(Exception):
    """An earlier call of this kind still hangs, so no second one was started."""


class Aside(Generic[T]):
    """Runs one kind of blocking call, one at a time, in a daemon thread."""

    def __init__(self, name: str) -> None:
        """`name` is the thread's."""
        self._name = name
        self._ended = threading.Event()
        self._ended.set()
        self.abandoned = 0
        """Calls that were still running at their deadline."""

    async def run(self, call: Callable[[], T], within: Seconds) -> T:
        """Return what `call` returns, or raise what it raises.

        Raises:
            StuckError: an earlier call has not come back yet.
            TimeoutError: this one did not come back within `within` seconds; it may still run.
        """
        if not self._ended.is_set():
            raise StuckError(f"{self._name} still hangs")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._ended = ended = threading.Event()
        args = (loop, done, call, ended)
        threading.Thread(target=_work, args=args, name=self._name, daemon=True).start()
        try:
            async with asyncio.timeout(within):
                return await done
        except TimeoutError:
            if done.cancelled():
                self.abandoned += 1
            raise


def _work(
    loop: asyncio.AbstractEventLoop, done: asyncio.Future[T], call: Callable[[], T], ended: threading.Event
) -> None:
    settle: Callable[[], None]
    try:
        settle = partial(done.set_result, call())
    except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
        settle = partial(done.set_exception, error)
    ended.set()  # before anybody is told, so that whoever is told can start the next call
    # A closed loop raises: nobody waits any more.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(_unless_done, done, settle)


def _unless_done(done: asyncio.Future[T], settle: Callable[[], None]) -> None:
    if not done.done():
        settle()
