"""Programs as probes: one at a time, with a deadline, never in the way of the loop or of the exit.

Invariant: while a program of an earlier run cannot be killed, no second one is started. A driver that hangs
leaves its callers in an uninterruptible wait; one more every three seconds would fill the process table.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from vacancy_agent.collect.child import Child, ChildDeadlineError, ChildError, ChildUnkillableError, Finished
from vacancy_agent.core.facts import Instant, Seconds
from vacancy_agent.platform.threads import Aside, StuckError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vacancy_agent.clock import Clock

_GRACE = 3.0  # seconds past the deadline within which a killed program has been given up


class ProbeRunner:
    """Runs the program of one probe."""

    def __init__(self, name: str, clock: Clock, *, deadline: Seconds, max_output: int = 1 << 18) -> None:
        """`deadline`: seconds a run may take; `max_output`: bytes past which it is killed."""
        self._clock = clock
        self._deadline = deadline
        self._max_output = max_output
        self._aside: Aside[Finished] = Aside(name)
        self._child: Child | None = None
        self.abandoned = 0
        """Programs that could not be killed, or not even started, in time."""

    async def run(self, argv: Sequence[str]) -> Finished:
        """Run `argv` to its end.

        Raises:
            ChildError: it yields nothing, for the reason its kind and message tell.
        """
        if self._child is not None and not self._child.gone():
            raise ChildUnkillableError("the last run cannot be killed, so no other is started")
        self._child = None
        stop = threading.Event()
        try:
            return await self._aside.run(lambda: self._work(argv, stop), Seconds(self._deadline + _GRACE))
        except StuckError as error:
            raise ChildUnkillableError("the last run hangs in the kernel, so no other is started") from error
        except TimeoutError as error:
            self.abandoned += 1
            raise ChildDeadlineError("it hangs in the kernel") from error
        finally:
            stop.set()  # on cancellation: the thread ends, and with it the program

    def kill(self) -> None:
        """Kill what runs now, for an exit that cannot wait."""
        if self._child is not None:
            self._child.kill()

    def _work(self, argv: Sequence[str], stop: threading.Event) -> Finished:
        child = Child(argv, self._max_output)
        self._child = child
        try:
            finished = child.finish(self._clock, Instant(self._clock.now() + self._deadline), stop)
        except ChildUnkillableError:
            self.abandoned += 1
            raise
        self._child = None
        return finished


__all__ = ["ChildError", "Finished", "ProbeRunner"]
