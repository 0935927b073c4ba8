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
6. an Ollama holds the model, and not wholly on the card that the route needs (`upstream_not_on_gpu`, 30 s);
   or the model's footprint does not fit into the free memory of every resource that has memory
   (`insufficient_capacity`, 30 s): a model proved resident is charged its smaller resident need.

Whether the resource is in use (`resource_busy`) is the ledger's answer, after this one.

Usage: `decide(board, Ask(upstream, model), now, wall)`; in the path of a request `gate_kept.Gate` gives the
same answers from memory. `lendable` answers for conditions and endpoints.
"""

from __future__ import annotations

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
from vacancy_agent.core.residency import GPU, off_gpu, residency
from vacancy_agent.core.rfc3339 import rfc3339
from vacancy_agent.core.settings import OwnerScope
from vacancy_agent.core.verdict import Admit, Refuse, Verdict
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vacancy_agent.core.board import Board
    from vacancy_agent.core.facts import Capacity, Presence, Reading, WallTime
    from vacancy_agent.core.residency import Proof
    from vacancy_agent.core.settings import Footprint, ResourceSettings, UpstreamSettings
    from vacancy_dialects import RunnerAsk

    CapacityView = Callable[[str], Reading[Capacity]]


class Ask(NamedTuple):
    """What the gate needs to know of a request."""

    upstream: str
    model: str | None = None
    prior: Mapping[str, MiB] | None = None
    """Learned footprint by resource (`Priors.of`); raises the configured need, never lowers it."""
    runner: RunnerAsk | None = None
    """What an Ollama request says about the runner that is to serve it."""


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
        allowed(board, wall)  # 1
        or owner(board, upstream, now)  # 2, 3, 4
        or resources(board, upstream, now, board.capacity.__getitem__)  # 5
    )


def allowed(board: Board, wall: WallTime) -> Refuse | None:
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


def resources(board: Board, upstream: UpstreamSettings, now: Instant, view: CapacityView) -> Refuse | None:
    """Step 5, for each resource in order."""
    bound = board.settings.sampling.stale_after
    for name in upstream.requires:
        if not board.resource_enabled(name):
            return Refuse(Reason.RESOURCE_DISABLED, 300, {"resource": name}, 5)
        refused = capacity(board.settings.resources[name], view(name), now, bound) or pressure(board, name)
        if refused is not None:
            return refused
    return None


def capacity(res: ResourceSettings, reading: Reading[Capacity], now: Instant, bound: float) -> Refuse | None:
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
    return None if value.free >= res.min_free else short(res.name, value.free, res.min_free, 5)


def pressure(board: Board, resource: str) -> Refuse | None:
    """Step 5: the owner's load on a resource."""
    state = board.pressure[resource]
    if state is Pressure.ENGAGED:
        return Refuse(Reason.RESOURCE_PRESSURED, 30, {"resource": resource}, 5)
    if state is Pressure.UNKNOWN or state is Pressure.CALIBRATING:
        view = board.pressure_view.get(resource)
        return _unmeasured(resource, view.why if view and view.why else f"pressure is {state.value}")
    return None


def _unmeasured(resource: str, why: str) -> Refuse:
    return Refuse(Reason.RESOURCE_UNMEASURED, 30, {"resource": resource, "why": why}, 5)


def short(resource: str, free: MiB, need: MiB, step: int) -> Refuse:
    """Less free memory was measured than is needed."""
    detail = {"resource": resource, "freeMiB": free, "needMiB": need}
    return Refuse(Reason.INSUFFICIENT_CAPACITY, 30, detail, step)


def footprint(board: Board, upstream: UpstreamSettings, ask: Ask, now: Instant) -> Verdict:
    """Step 6, after step 5 found every capacity fresh."""
    off = off_gpu(board, upstream, ask, now)
    if off is not None:
        detail = {"resource": off[0], "model": ask.model}
        return Refuse(Reason.UPSTREAM_NOT_ON_GPU, 30, detail, 6, needs_residency=off[1])
    wanted = wanted_by(upstream, ask.model)
    proof = residency(board, upstream, ask, now)
    prior = None if proof.credited else ask.prior
    need = min(wanted.resident_min_free, wanted.min_free) if proof.credited else wanted.min_free
    charged = need
    for name in upstream.requires:
        reading = board.capacity[name]
        if isinstance(reading, Ready) and isinstance(reading.value, MemoryCapacity):
            here = need if prior is None else max(need, prior.get(name, need))
            free = reading.value.free
            if proof.added and board.settings.resources[name].type in GPU:
                free = MiB(free + proof.added)
            if free < here:
                return _with_credit(short(name, free, here, 6), proof)
            charged = max(charged, here)
    return Admit(charged, proof.credited, proof.why, proof.added)


def wanted_by(upstream: UpstreamSettings, model: str | None) -> Footprint:
    """The configured footprint of a model; the default where it has none of its own."""
    if model is None:
        return upstream.default_footprint
    return upstream.footprints.get(model, upstream.default_footprint)


def _with_credit(refused: Refuse, proof: Proof) -> Refuse:
    detail = {**refused.detail, "credit": proof.why}
    return Refuse(
        refused.reason, refused.retry_after, detail, refused.step, needs_residency=proof.only_too_old
    )
