"""Large bodies are judged one in a turn of the loop.

Invariant: between two of them the loop sees what else has come, an owner's return first of all. To judge one
takes some milliseconds; the failure this prevents is a borrower who completes two hundred of them in the same
moment: a single turn of the loop, and seconds without another. Rejected: a task for each, since all of them
would run in the next turn.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Turns:
    """Calls what it is given, in order, each in a turn of its own."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        """`call_soon` is the loop's."""
        self._call_soon = call_soon
        self._waiting: deque[Callable[[], None]] = deque()

    def take(self, call: Callable[[], None]) -> None:
        """Call `call` in a later turn."""
        self._waiting.append(call)
        if len(self._waiting) == 1:
            self._call_soon(self._next)

    def _next(self) -> None:
        try:
            self._waiting[0]()
        finally:
            self._waiting.popleft()
            if self._waiting:
                self._call_soon(self._next)
