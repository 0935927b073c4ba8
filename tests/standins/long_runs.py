"""Many random steps from one seed; a failure says how to come there again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 10_000


class Stepping(Protocol):
    """Something that takes one random step at a time, and asserts what has to hold after it."""

    def step(self) -> None: ...


S = TypeVar("S", bound=Stepping)


def ten_thousand_steps(make: Callable[[int], S], seed: int) -> S:
    """What `make` makes of the seed, after that many steps."""
    made = make(seed)
    for number in range(STEPS):
        try:
            made.step()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, step {number}") from error
    return made
