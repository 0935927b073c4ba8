"""What keeps an agent from being ready: proxies that do not listen, samples that are not fresh."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.core.board import Pressure
from vacancy_agent.core.facts import Ready

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vacancy_agent.core.board import Board
    from vacancy_agent.core.facts import Instant


def missing(board: Board, now: Instant, bound: Callable[[str], bool]) -> Iterator[str]:
    """One line for each thing that is missing; `bound` tells whether an upstream's proxy listens."""
    oldest = board.settings.sampling.stale_after
    for name in board.settings.upstreams:
        if not bound(name):
            yield f"the proxy of {name} does not listen"
    seen = board.presence_at if board.presence_sampled else None  # a new way to look begins anew
    if seen is None or now - seen > oldest:
        yield "presence has no fresh sample"
    needed = {name for upstream in board.settings.upstreams.values() for name in upstream.requires}
    for name in sorted(needed):
        reading = board.capacity[name]
        fresh = isinstance(reading, Ready) and now - reading.at <= oldest
        if not board.resource_enabled(name):
            continue
        if not fresh:
            yield f"resource {name} has no fresh sample"
        if board.pressure[name] is Pressure.UNKNOWN:
            yield f"the owner's load on resource {name} is not known"
