"""The gate: may this request be forwarded now? Pure: the board and the clock come in, a verdict comes out.

The steps, in this order, with these reasons and hints (the architecture's, numbered alike in the code):

1. lending is off: by the specification, its schedule, the cluster's pause or the local one
   (`lending_disabled`, 300 s, or the seconds to the end where that is sooner).
2. presence was not sampled since the start, or, for a host-scoped upstream, its sample is older than four
   polls and at least 15 s (`owner_active`, 5 s).
3. host-scoped only: the presence evidence is unknown or incomplete (`owner_active`, 30 s).
4. host-scoped only: the owner's veto is engaged (`owner_active`, 120 s).
5. for the primary resource and then each further one, in order: its switch is off (`resource_disabled`,
   300 s); its capacity is unknown or stale (`resource_unmeasured`, 30 s); its own limit is not met
   (`insufficient_capacity`, 30 s); its pressure is required and unknown or uncalibrated
   (`resource_unmeasured`, 30 s) or engaged (`resource_pressured`, 30 s).
6. the model's footprint does not fit into the free memory of every resource that has memory
   (`insufficient_capacity`, 30 s); a model proved resident is charged its smaller resident need.

Whether the resource is in use (`resource_busy`) is the ledger's answer, after this one.

Usage: `Gate(board).decide(Ask(upstream, model), now, wall)` in the path of a request; `decide(board, ...)` is
the same without the cache. `lendable` and `host_lendable` answer for conditions and endpoints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from vacancy_agent.core.board import Pressure
from vacancy_agent.core.facts import (
    CpuCapacity,
    Evidence,
    Instant,
    MemoryCapacity,
    MiB,
    Ready,
    Stale,
    Unknown,
)
from vacancy_agent.core.rfc3339 import rfc3339
from vacancy_agent.core.settings import OwnerScope
from vacancy_agent.core.verdict import Admit, Refuse, Verdict
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vacancy_agent.core.board import Board
    from vacancy_agent.core.facts import Capacity, Presence, Reading, WallTime
    from vacancy_agent.core.settings import Footprint, ResourceSettings, UpstreamSettings

    CapacityView = Callable[[str], Reading[Capacity]]

RESIDENCY_AGE = 4.0
"""Seconds; an older observation of the resident model proves nothing."""
KEPT_FOR = 1.0
"""Seconds a verdict is kept at most, so that a stepped wall clock is noticed by pauses and schedules."""
KEPT_MODELS = 64
_SENTENCES: dict[Reason, str] = {
    Reason.LENDING_DISABLED: "lending is switched off on this host",
    Reason.OWNER_ACTIVE: "the owner of this host is using it, or may be",
    Reason.RESOURCE_DISABLED: "a resource this upstream needs is switched off",
    Reason.RESOURCE_UNMEASURED: "a resource this upstream needs could not be measured",
    Reason.INSUFFICIENT_CAPACITY: "a resource this upstream needs has too little room",
    Reason.RESOURCE_PRESSURED: "the owner's own work loads a resource this upstream needs",
    Reason.RESOURCE_BUSY: "a resource this upstream needs is in use by other borrowed work",
}


class Ask(NamedTuple):
    """What the gate needs to know of a request."""

    upstream: str
    model: str | None = None
    prior: Mapping[str, MiB] | None = None
    """Learned footprint by resource (`Priors.of`); raises the configured need, never lowers it."""


def sentence(refusal: Refuse) -> str:
    """The refusal in words for the borrower; says nothing about a person beyond `owner_active` itself."""
    return _SENTENCES[refusal.reason]


def decide(board: Board, ask: Ask, now: Instant, wall: WallTime) -> Verdict:
    """Steps 1 to 6 for one request.

    Raises:
        KeyError: no such upstream (a bug of the caller: listeners exist for configured upstreams only).
    """
    upstream = board.settings.upstreams[ask.upstream]
    return standing(board, upstream, now, wall) or footprint(board, upstream, ask, now)


def standing(board: Board, upstream: UpstreamSettings, now: Instant, wall: WallTime) -> Refuse | None:
    """Steps 1 to 5: what does not depend on the request."""
    return (
        _lending(board, wall)  # 1
        or owner(board, upstream, now)  # 2, 3, 4
        or _resources(board, upstream, now, board.capacity.__getitem__)  # 5
    )


def _lending(board: Board, wall: WallTime) -> Refuse | None:
    """Step 1."""
    answer = board.lending(wall)
    if answer.by is None:
        return None
    detail: dict[str, object] = {"by": answer.by.value}
    if answer.until is not None:
        detail["until"] = rfc3339(answer.until)
    return Refuse(Reason.LENDING_DISABLED, answer.retry_after(wall), detail, 1)


def owner(board: Board, upstream: UpstreamSettings, now: Instant) -> Refuse | None:
    """Steps 2 to 4, the owner checks."""
    if not board.presence_sampled:  # 2
        return _OWNER_UNSAMPLED
    if upstream.owner_scope is OwnerScope.RESOURCE:
        return None
    return _presence(board.presence, now, board.settings.sampling.stale_after) or (
        _OWNER_VETO if board.veto.engaged else None  # 4
    )


def _presence(reading: Reading[Presence], now: Instant, bound: float) -> Refuse | None:
    """Steps 2 (age) and 3 (evidence)."""
    if isinstance(reading, Unknown):
        return _OWNER_INCOMPLETE  # 3: asked, and got no answer
    if isinstance(reading, Stale) or now - reading.at > bound:
        return _OWNER_STALE  # 2
    if reading.value.evidence is Evidence.UNCLEAR:
        return _OWNER_INCOMPLETE  # 3
    return None


_OWNER_UNSAMPLED = Refuse(Reason.OWNER_ACTIVE, 5, {"cause": "not_sampled"}, 2)
_OWNER_STALE = Refuse(Reason.OWNER_ACTIVE, 5, {"cause": "stale"}, 2)
_OWNER_INCOMPLETE = Refuse(Reason.OWNER_ACTIVE, 30, {"cause": "incomplete_evidence"}, 3)
_OWNER_VETO = Refuse(Reason.OWNER_ACTIVE, 120, {"cause": "veto"}, 4)


def _resources(board: Board, upstream: UpstreamSettings, now: Instant, view: CapacityView) -> Refuse | None:
    """Step 5, for each resource in order."""
    bound = board.settings.sampling.stale_after
    for name in upstream.requires:
        if not board.resource_enabled(name):
            return Refuse(Reason.RESOURCE_DISABLED, 300, {"resource": name}, 5)
        refused = _capacity(board.settings.resources[name], view(name), now, bound) or pressure(board, name)
        if refused is not None:
            return refused
    return None


def _capacity(res: ResourceSettings, reading: Reading[Capacity], now: Instant, bound: float) -> Refuse | None:
    """Step 5: is the resource measured, and does it meet its own limit?"""
    if not isinstance(reading, Ready):
        return _unmeasured(res.name, reading.why)
    if now - reading.at > bound:
        return _unmeasured(res.name, "the last reading is too old")
    value = reading.value
    if isinstance(value, CpuCapacity):
        limit = res.max_utilization
        if limit is None or value.utilization <= limit:
            return None
        detail = {
            "resource": res.name,
            "utilizationPercent": value.utilization,
            "maxUtilizationPercent": limit,
        }
        return Refuse(Reason.INSUFFICIENT_CAPACITY, 30, detail, 5)
    return None if value.free >= res.min_free else _short(res.name, value.free, res.min_free, 5)


def pressure(board: Board, resource: str) -> Refuse | None:
    """Step 5: the owner's load on a resource."""
    state = board.pressure[resource]
    if state is Pressure.ENGAGED:
        return Refuse(Reason.RESOURCE_PRESSURED, 30, {"resource": resource}, 5)
    if state is Pressure.UNKNOWN or state is Pressure.CALIBRATING:
        return _unmeasured(resource, f"pressure is {state.value}")
    return None


def _unmeasured(resource: str, why: str) -> Refuse:
    return Refuse(Reason.RESOURCE_UNMEASURED, 30, {"resource": resource, "why": why}, 5)


def _short(resource: str, free: MiB, need: MiB, step: int) -> Refuse:
    detail = {"resource": resource, "freeMiB": free, "needMiB": need}
    return Refuse(Reason.INSUFFICIENT_CAPACITY, 30, detail, step)


def footprint(board: Board, upstream: UpstreamSettings, ask: Ask, now: Instant) -> Verdict:
    """Step 6, after step 5 found every capacity fresh."""
    wanted = _wanted(upstream, ask.model)
    proof = residency(board, upstream, now)
    prior = None if proof.credited else ask.prior
    need = min(wanted.resident_min_free, wanted.min_free) if proof.credited else wanted.min_free
    charged = need
    for name in upstream.requires:
        reading = board.capacity[name]
        if isinstance(reading, Ready) and isinstance(reading.value, MemoryCapacity):
            here = need if prior is None else max(need, prior.get(name, need))
            if reading.value.free < here:
                refused = _short(name, reading.value.free, here, 6)
                return _with_credit(refused, proof)
            charged = max(charged, here)
    return Admit(charged, proof.credited, proof.why)


def _wanted(upstream: UpstreamSettings, model: str | None) -> Footprint:
    if model is None:
        return upstream.default_footprint
    return upstream.footprints.get(model, upstream.default_footprint)


def _with_credit(refused: Refuse, proof: Proof) -> Refuse:
    detail = {**refused.detail, "credit": proof.why}
    return Refuse(
        refused.reason, refused.retry_after, detail, refused.step, needs_residency=proof.only_too_old
    )


class Proof(NamedTuple):
    """Whether the upstream proved that it holds its model, and why (not)."""

    credited: bool
    why: str
    only_too_old: bool = False


_NO_OBSERVATION = Proof(False, "none: the upstream does not show its resident model")


def residency(board: Board, upstream: UpstreamSettings, now: Instant) -> Proof:
    """Step 6: a llamacpp server holds one model for life, so fresh idle slots prove it resident."""
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


@dataclass(slots=True)
class _Kept:
    """Steps 1 to 5 passed; true while the version stands and `until` has not come."""

    version: int
    until: float
    admits: dict[str | None, tuple[Mapping[str, MiB] | None, Admit]]


class Gate:
    """`decide` with a memory: while nothing changed, an admission costs one look-up.

    Only admissions are kept. A refusal carries seconds that run down, and is not the path to be fast on.
    """

    __slots__ = ("_board", "_kept")

    def __init__(self, board: Board) -> None:
        self._board = board
        self._kept: dict[str, _Kept] = {}

    def decide(self, ask: Ask, now: Instant, wall: WallTime) -> Verdict:
        """The same answer as `decide(board, ask, now, wall)`."""
        name, model, prior = ask
        kept = self._kept.get(name)
        if kept is None or kept.version != self._board.version or now >= kept.until:
            fresh = self._renew(name, now, wall)
            if isinstance(fresh, Refuse):
                return fresh
            kept = fresh
        hit = kept.admits.get(model)
        if hit is not None and hit[0] is prior:
            return hit[1]
        return self._charge(kept, ask, now)

    def _renew(self, name: str, now: Instant, wall: WallTime) -> _Kept | Refuse:
        board = self._board
        upstream = board.settings.upstreams[name]
        refused = standing(board, upstream, now, wall)
        if refused is not None:
            self._kept.pop(name, None)
            return refused
        kept = self._kept[name] = _Kept(board.version, _holds_until(board, upstream, now, wall), {})
        return kept

    def _charge(self, kept: _Kept, ask: Ask, now: Instant) -> Verdict:
        board = self._board
        verdict = footprint(board, board.settings.upstreams[ask.upstream], ask, now)
        # A credit ages and falls with every job, without a new version: it is proved anew each time.
        if (
            isinstance(verdict, Admit)
            and ask.upstream not in board.residency
            and len(kept.admits) < KEPT_MODELS
        ):
            kept.admits[ask.model] = (ask.prior, verdict)
        return verdict


def _holds_until(board: Board, upstream: UpstreamSettings, now: Instant, wall: WallTime) -> float:
    """When an admission by steps 1 to 5 can first turn, if nothing is written to the board."""
    bound = board.settings.sampling.stale_after
    ages = [board.capacity[name] for name in upstream.requires]
    times = [reading.at + bound for reading in ages if isinstance(reading, Ready)]
    if upstream.owner_scope is OwnerScope.HOST and isinstance(board.presence, Ready):
        times.append(board.presence.at + bound)
    return min(now + KEPT_FOR, now + (board.lending(wall).changes_at - wall), *times)


@dataclass(frozen=True, slots=True)
class Lendable:
    """Whether a request would be admitted, the lender's own work aside."""

    refusal: Refuse | None

    @property
    def yes(self) -> bool:
        """A request would be admitted."""
        return self.refusal is None

    @property
    def reason(self) -> str:
        """Reason of the condition, in CamelCase."""
        return "WouldAdmit" if self.refusal is None else self.refusal.reason.camel


def lendable(board: Board, name: str, now: Instant, wall: WallTime) -> Lendable:
    """The gate for one upstream without the ledger, the wait for a sample, and what borrowed work occupies.

    Which model a request would name is unknown: the one with the smallest footprint stands for all.
    """
    upstream = board.settings.upstreams[name]

    def view(resource: str) -> Reading[Capacity]:
        return board.capacity_aside(resource, now)

    return Lendable(
        _lending(board, wall)
        or owner(board, upstream, now)
        or _resources(board, upstream, now, view)
        or _smallest(board, upstream, now, view)
    )


def _smallest(board: Board, upstream: UpstreamSettings, now: Instant, view: CapacityView) -> Refuse | None:
    """Step 6 for the model that needs least."""
    wanted = min((upstream.default_footprint, *upstream.footprints.values()), key=lambda f: f.min_free)
    need = wanted.min_free
    if residency(board, upstream, now).credited:
        need = min(need, wanted.resident_min_free)
    for name in upstream.requires:
        reading = view(name)
        if (
            isinstance(reading, Ready)
            and isinstance(reading.value, MemoryCapacity)
            and reading.value.free < need
        ):
            return _short(name, reading.value.free, need, 6)
    return None


def host_lendable(board: Board, now: Instant, wall: WallTime) -> Lendable:
    """Whether any upstream is lendable; otherwise the refusal of the earliest step, the widest cause."""
    answers = [lendable(board, name, now, wall) for name in board.settings.upstreams]
    refusals = [answer.refusal for answer in answers if answer.refusal is not None]
    if len(refusals) < len(answers):
        return Lendable(None)
    if not refusals:
        return Lendable(Refuse(Reason.RESOURCE_DISABLED, 300, {"why": "no upstream is configured"}, 5))
    return Lendable(min(refusals, key=lambda refusal: refusal.step))
