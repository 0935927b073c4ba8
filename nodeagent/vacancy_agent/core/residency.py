"""Does an upstream prove that it holds its model? Then the model is not charged to free memory again.

Invariant: a credit rests on an observation that is fresh and newer than the last job's end and the last
unload on every resource concerned. The failure this prevents is a model that an unload threw out and that is
believed resident: the request would load it anew on a card without room. Rejected: crediting whatever the
upstream was asked to load last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vacancy_agent.core.facts import Stale, Unknown

if TYPE_CHECKING:
    from vacancy_agent.core.board import Board
    from vacancy_agent.core.facts import Instant
    from vacancy_agent.core.settings import UpstreamSettings

RESIDENCY_AGE = 4.0
"""Seconds; an older observation of the resident model proves nothing."""


class Proof(NamedTuple):
    """Whether the upstream proved that it holds its model, and why (not)."""

    credited: bool
    why: str
    only_too_old: bool = False


_NO_OBSERVATION = Proof(False, "none: the upstream does not show its resident model")


def residency(board: Board, upstream: UpstreamSettings, now: Instant) -> Proof:
    """A llamacpp server holds one model for life, so fresh idle slots prove it resident."""
    reading = board.residency.get(upstream.name)
    if reading is None:
        return _NO_OBSERVATION
    if isinstance(reading, Unknown):
        return Proof(False, f"none: {reading.why}", only_too_old=True)
    if isinstance(reading, Stale) or now - reading.at > RESIDENCY_AGE:
        return Proof(False, "none: the observation is too old", only_too_old=True)
    if any(reading.at <= board.last_disturbance(name) for name in upstream.requires):
        return Proof(False, "none: observed before the last job or unload ended", only_too_old=True)
    if not reading.value.idle:
        return Proof(False, "none: the server is not idle")
    return Proof(True, "resident: shown by idle slots")
