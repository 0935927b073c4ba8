"""Words on the way, on stderr: stdout is for what scripts read."""

from __future__ import annotations

import sys


class BuildError(RuntimeError):
    """Something is missing or failed; the message says what to do."""


def say(message: str, who: str = "go") -> None:
    """One line."""
    print(f"{who}: {message}", file=sys.stderr, flush=True)


def lasted(seconds: float) -> str:
    """A length of time for people."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
