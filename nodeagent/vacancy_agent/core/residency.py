"""Does an upstream prove that it holds what a request needs? Then that is not charged to free memory again.

Invariant: a credit rests on an observation that is fresh and newer than the last job's end and the last
unload on every resource concerned. The failure this prevents is a model that an unload threw out and that is
believed resident: the request would load it anew on a card without room. Rejected: crediting whatever the
upstream was asked to load last.

By dialect: a llamacpp server holds one model for life, so fresh idle slots prove it; an ollama proves it by
its list of models, for a request that is known to reuse the context listed there; of a comfyui, what its
allocator holds is added to the free memory of the one card on the route. The unproved is charged in full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vacancy_agent.core.facts import MiB, Ready, Stale, Unknown
from vacancy_agent.core.settings import Dialect, ResourceType
from vacancy_agent.core.shown import ModelsShown, PoolShown, SlotsShown

if TYPE_CHECKING:
    from vacancy_agent.core.board import Board
    from vacancy_agent.core.facts import Instant
    from vacancy_agent.core.gate import Ask
    from vacancy_agent.core.settings import UpstreamSettings
    from vacancy_agent.core.shown import ModelShown

RESIDENCY_AGE = 4.0
"""Seconds; an older observation of what an upstream holds proves nothing."""
KEEPS_FOR = 30.0
"""Seconds that a model must still be kept for."""
GPU = frozenset({ResourceType.NVIDIA, ResourceType.AMD})


class Proof(NamedTuple):
    """Whether the upstream proved that it holds what the request needs, and why (not)."""

    credited: bool
    why: str
    only_too_old: bool = False
    """Nothing but the age of the observation stood against it: another one may turn the answer."""
    added: MiB = MiB(0)
    """Memory to add to what is free on the route's card."""


def residency(board: Board, upstream: UpstreamSettings, ask: Ask, now: Instant) -> Proof:
    """The proof for one request."""
    refused = _asks_too_much(upstream, ask)
    if refused is not None:
        return refused
    reading = board.residency.get(upstream.name)
    if reading is None:
        return _UNSHOWN if upstream.dialect in SHOWS else _SHOWS_NOTHING
    if not isinstance(reading, Ready):
        return Proof(False, f"none: {reading.why}", only_too_old=True)
    outdated = _outdated(board, upstream, reading.at, now)
    if outdated is not None:
        return outdated
    shown = reading.value
    if isinstance(shown, ModelsShown):
        return _model(board, shown, ask, now)
    return _slots(shown) if isinstance(shown, SlotsShown) else _pool(board, upstream, shown)


def off_gpu(board: Board, upstream: UpstreamSettings, ask: Ask, now: Instant) -> tuple[str, bool] | None:
    """The first card on the route that a listed model is not wholly on, and whether the list is too old.

    A list that is old says so all the same until the model would have gone: a request would run on the
    processor. Of a model listed before the machine slept it is not known: a card may be lost by that.
    Whoever refuses for either looks once more.
    """
    reading = board.residency.get(upstream.name)
    if reading is None or isinstance(reading, Unknown) or not isinstance(reading.value, ModelsShown):
        return None
    card = next((name for name in upstream.requires if board.settings.resources[name].type in GPU), None)
    rows = [row for row in reading.value.named(ask.model) if row.expires is None or row.expires > now]
    if card is None or not rows:
        return None
    if isinstance(reading, Stale):
        return (card, True) if reading.at < board.awake_since else None
    if all(row.on_gpu for row in rows):
        return None
    return card, _outdated(board, upstream, reading.at, now) is not None


SHOWS = frozenset({Dialect.OLLAMA, Dialect.LLAMACPP, Dialect.COMFYUI})
"""Dialects that tell what they hold."""
_SHOWS_NOTHING = Proof(False, "none: the upstream does not show its resident model")
_UNSHOWN = Proof(False, "none: not observed yet", only_too_old=True)
_TOO_OLD = Proof(False, "none: the observation is too old", only_too_old=True)
_DISTURBED = Proof(False, "none: observed before the last job or unload ended", only_too_old=True)


def _outdated(board: Board, upstream: UpstreamSettings, at: Instant, now: Instant) -> Proof | None:
    if now - at > RESIDENCY_AGE:
        return _TOO_OLD
    disturbed = any(at <= board.last_disturbance(name) for name in upstream.requires)
    return _DISTURBED if disturbed else None


def _asks_too_much(upstream: UpstreamSettings, ask: Ask) -> Proof | None:
    """What no observation could turn into a credit."""
    if upstream.dialect is not Dialect.OLLAMA:
        return None
    if ask.model is None or ask.runner is None:
        return Proof(False, "none: the request names no model")
    if ask.runner.other_options:
        return Proof(False, "none: the request sets runner options besides num_ctx")
    return None


def _model(board: Board, shown: ModelsShown, ask: Ask, now: Instant) -> Proof:
    rows = shown.named(ask.model)
    if len(rows) != 1:
        return Proof(False, "none: the model is listed twice" if rows else "none: the model is not resident")
    (row,) = rows
    lacking = _unkept(row, now)
    if lacking is not None:
        return Proof(False, lacking)
    assert ask.runner is not None  # noqa: S101 - `_asks_too_much`
    how = board.contexts.reused(row, ask.runner)
    if how is None:
        return Proof(False, f"none: the request is not known to reuse the resident context ({row.context})")
    return Proof(True, f"resident: listed with context {row.context}, {how}")


def _unkept(row: ModelShown, now: Instant) -> str | None:
    if row.context is None:
        return "none: the server does not tell the resident context"
    if row.expires is None:
        return "none: the time at which the model goes cannot be read"
    if row.expires - now < KEEPS_FOR:
        return "none: the model is about to go"
    return None


def _slots(shown: SlotsShown) -> Proof:
    return Proof(True, "resident: shown by idle slots") if shown.idle else Proof(False, f"none: {shown.why}")


def _pool(board: Board, upstream: UpstreamSettings, shown: PoolShown) -> Proof:
    cards = [name for name in upstream.requires if board.settings.resources[name].type in GPU]
    if len(cards) != 1:
        return Proof(False, "none: the route has not exactly one GPU")
    if not shown.held:
        return Proof(False, f"none: {shown.why or 'its allocator holds nothing'}")
    return Proof(False, f"added: {shown.held} MiB that its allocator holds", added=shown.held)
