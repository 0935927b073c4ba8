"""`GET /status`: the agent's report, in the shape of the contract, out of the live state. Reads only.

Invariant: what is not known is absent or null here, never zero. `owner` is for whoever sits at the machine;
nothing of it may go into the status of the resource.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from vacancy_agent.core import gate
from vacancy_agent.core.board import Pressure
from vacancy_agent.core.effects import ReclaimPhase
from vacancy_agent.core.facts import CpuCapacity, MemoryCapacity, Ready, Stale, Unknown
from vacancy_agent.core.job import Phase
from vacancy_agent.core.lendable import lendable
from vacancy_agent.core.rfc3339 import rfc3339
from vacancy_agent.core.settings import OwnerScope, ResourceType
from vacancy_agent.core.shown import ModelsShown
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_agent.admin.running import Running
    from vacancy_agent.core.board import Board
    from vacancy_agent.core.facts import Capacity, Instant, Reading, WallTime
    from vacancy_agent.core.job import Job
    from vacancy_agent.core.settings import ResourceSettings, UpstreamSettings

Document = dict[str, Any]

PLATFORMS = {"linux": "linux", "win32": "windows", "darwin": "macos"}
GPU = frozenset({ResourceType.NVIDIA, ResourceType.AMD})
MOST_MODELS = 64
NOT_LENT_FOR = {
    Pressure.ENGAGED: "the owner's own work loads it",
    Pressure.UNKNOWN: "the owner's load on it is not known",
    Pressure.CALIBRATING: "the owner's usual load on it is still being learned",
}
LONGEST_TEXT = 1024
"""Characters of a reason in the contract."""


def document(agent: Running, unreachable: Mapping[str, str | None]) -> Document:
    """The whole answer.

    Args:
        agent: the running agent.
        unreachable: by upstream why its server takes no connection; None: it does. A missing one is unknown.
    """
    clock = agent.host.clock
    now, wall = clock.now(), clock.wall()
    return {
        "agent": agent_status(agent, now, wall),
        "owner": owner(agent, now, wall),
        "conditions": [
            {
                "type": condition.type.value,
                "status": condition.status.value,
                "reason": condition.reason,
                "message": condition.message,
                "since": rfc3339(condition.since),
            }
            for condition in agent.conditions.all()
        ],
        "debugUntil": None if agent.debug.until is None else rfc3339(agent.debug.until),
        "switchedOff": (here := agent.host.board.local_pause) is not None and here.is_switch,
        "upstreams": {
            upstream.name: {
                **_more(agent, upstream.name, now, wall),
                "server": _server(upstream, unreachable),
            }
            for upstream in agent.host.board.settings.upstreams.values()
        },
    }


def agent_status(agent: Running, now: Instant, wall: WallTime) -> Document:
    """`status.agent`: what may be read by whoever may read the resource."""
    board = agent.host.board
    upstreams = [_upstream(agent, upstream, now, wall) for upstream in board.settings.upstreams.values()]
    return {
        "version": agent.version,
        "configDigest": agent.config_digest,
        "clockSkewSeconds": None,
        "address": agent.host.access.listen,
        "platform": PLATFORMS.get(sys.platform, sys.platform),
        "summary": {
            "freeVRAM": _free_vram(board, now),
            "models": sorted({name for one in upstreams for name in one["models"]})[:MOST_MODELS],
            "active": sum(one["active"] + one["held"] for one in upstreams),
        },
        "lending": lending(board, wall),
        "resources": [_resource(board, resource, now) for resource in board.settings.resources.values()],
        "upstreams": upstreams,
    }


def lending(board: Board, wall: WallTime) -> Document:
    """Whether the switches allow lending, until when not, and by whose word."""
    answer = board.lending(wall)
    return {
        "allowed": answer.allowed,
        "pausedUntil": None if answer.until is None else rfc3339(answer.until),
        "by": None if answer.by is None else answer.by.value,
    }


def owner(agent: Running, now: Instant, wall: WallTime) -> Document:
    """The part for the owner: presence, who uses what, today's use."""
    board = agent.host.board
    presence, why = _presence(board, now)
    return {
        "presence": presence,
        "why": why,
        "sampleAges": _ages(board, now),
        "loads": {
            name: {"percent": view.load, "why": view.why or None}
            for name, view in board.pressure_view.items()
        },
        "work": [_work(job, now, wall) for job in agent.host.ledger.jobs()],
        "usageToday": [
            {
                "borrower": borrower,
                "requests": used.requests,
                "seconds": round(used.seconds, 3),
                "tokens": None,
            }
            for borrower, used in sorted(agent.usage_today().items())
        ],
        "vetoExempt": [
            name for name, up in board.settings.upstreams.items() if up.owner_scope is OwnerScope.RESOURCE
        ],
    }


def holds(agent: Running) -> Document:
    """Work whose end is not proved."""
    now, wall = agent.host.clock.now(), agent.host.clock.wall()
    return {"holds": [hold(job, now, wall) for job in agent.host.ledger.holds()]}


def hold(job: Job, now: Instant, wall: WallTime) -> Document:
    """One held job, as `/admin/holds` lists it."""
    entry = _work(job, now, wall)
    return {**entry, "why": job.why}


def _presence(board: Board, now: Instant) -> tuple[str, str]:
    reading = board.presence_shown(now)
    if isinstance(reading, Ready):
        return reading.value.evidence.value, reading.value.why
    return "unknown", reading.why


def _ages(board: Board, now: Instant) -> Document:
    """Seconds since each sample was taken; a reading that is not there has no age."""
    ages = {name: _age(reading, now) for name, reading in board.capacity.items()}
    return ages | {"presence": None if board.presence_at is None else round(now - board.presence_at, 3)}


def _age(reading: Reading[Capacity], now: Instant) -> float | None:
    return None if isinstance(reading, Unknown) else round(now - reading.at, 3)


def _work(job: Job, now: Instant, wall: WallTime) -> Document:
    return {
        "id": str(job.id),
        "borrower": job.borrower,
        "upstream": job.upstream,
        "model": job.model,
        "phase": job.phase.value,
        "since": rfc3339(type(wall)(wall - (now - job.since))),
    }


def _upstream(agent: Running, upstream: UpstreamSettings, now: Instant, wall: WallTime) -> Document:
    name = upstream.name
    refusal = lendable(agent.host.board, name, now, wall).refusal
    counts = agent.host.ledger.counts().get(name, {})
    bound = agent.bound(name)
    reason = None if refusal is None else refusal.reason
    if reason is None and not bound:
        reason = Reason.UPSTREAM_UNAVAILABLE
    return {
        "name": name,
        "dialect": upstream.dialect.value,
        "port": upstream.port,
        "bound": bound,
        "lendable": reason is None,
        "reason": None if reason is None else reason.value,
        "active": counts.get(Phase.FORWARDING, 0) + counts.get(Phase.TRACKING, 0),
        "held": counts.get(Phase.HELD, 0),
        "models": _models(agent.host.board, name),
        "listener": agent.server_listener(name).value,
        "unseenGpuWork": name in agent.host.board.unseen_gpu_work,
        "priorityScheduling": upstream.priority_scheduling,
    }


def _more(agent: Running, name: str, now: Instant, wall: WallTime) -> Document:
    residency, published = _residency(agent, name), agent.reclaims.get(name)
    if published is None:
        return {"residency": residency, "reclaim": None}
    waits = published.phase is ReclaimPhase.WAITING and published.edges
    began = published.edges[0] if waits else published.at  # a later edge joins the wait of the first
    since = rfc3339(type(wall)(wall - (now - began)))
    reclaim: Document = {"phase": published.phase.value, "since": since}
    if (unloaded := agent.unloaded.get(name)) is not None:
        reclaim["unload"] = {"shown": unloaded[0], "why": unloaded[1][:LONGEST_TEXT]}
    return {"residency": residency, "reclaim": reclaim}


def _residency(agent: Running, name: str) -> Document:
    """The credit of the newest admission; empty where nothing held was counted, or there was none."""
    models = agent.host.models.get(name)
    applied = None if models is None else models.applied
    if applied is None:
        return {}
    return {
        "credited": True,
        "model": applied.model,
        "why": applied.why[:LONGEST_TEXT],
        "chargedMiB": applied.charged,
        "since": rfc3339(applied.at),
    }


def _models(board: Board, name: str) -> list[str]:
    """What the upstream's server lists as loaded; a list that is outdated says nothing about now."""
    reading = board.residency.get(name)
    shown = reading.value if isinstance(reading, Ready) else None
    return [model.name for model in shown.models][:MOST_MODELS] if isinstance(shown, ModelsShown) else []


def _server(upstream: UpstreamSettings, unreachable: Mapping[str, str | None]) -> Document:
    known = upstream.name in unreachable
    why = unreachable.get(upstream.name)
    target = upstream.target
    host = f"[{target.host}]" if ":" in target.host else target.host
    return {
        "target": f"{target.scheme}://{host}:{target.port}",
        "reachable": why is None if known else None,
        "why": why,
    }


def _resource(board: Board, resource: ResourceSettings, now: Instant) -> Document:
    reading = board.capacity[resource.name]
    state, why = _state(reading, now, board.settings.sampling.stale_after)
    enabled = board.resource_enabled(resource.name)
    if not enabled:
        why = "switched off at this machine" if resource.enabled else "switched off in the specification"
    elif why is None:
        why = _not_lent(board, resource, now)
    return {
        "name": resource.name,
        "type": resource.type.value,
        "state": state,
        "reason": None if why is None else why[:LONGEST_TEXT],
        **_figures(reading),
        "enabled": enabled,
        "pressure": _pressure(board, resource.name) if resource.type in GPU else None,
    }


def _not_lent(board: Board, resource: ResourceSettings, now: Instant) -> str | None:
    """Why a resource that can be read is not lent, own work aside; without figures, which ever change."""
    bound = board.settings.sampling.stale_after
    if gate.capacity(resource, board.capacity_aside(resource.name, now), now, bound) is not None:
        most = resource.max_utilization
        kept = f"less is free than its owner keeps: minFreeMiB {resource.min_free}"
        return kept if most is None else f"it is busier than maxUtilizationPercent {most:g} allows"
    return NOT_LENT_FOR.get(board.pressure[resource.name])


def _pressure(board: Board, resource: str) -> Document:
    """A load that only builds up still admits: for whoever reads the status that is clear."""
    state, view = board.pressure[resource], board.pressure_view.get(resource)
    if view is None:
        shown = Pressure.CLEAR if state is Pressure.BUILDING else state
        return {"state": shown.value, "thresholdPercent": None, "calibratedMinutes": None}
    return {
        "state": view.shown,
        "thresholdPercent": view.threshold,
        "calibratedMinutes": view.calibrated_minutes,
    }


def _state(reading: Reading[Capacity], now: Instant, bound: float) -> tuple[str, str | None]:
    if isinstance(reading, Unknown):
        return "unknown", reading.why
    if isinstance(reading, Stale):
        return "stale", reading.why
    return ("stale", "the last reading is too old") if now - reading.at > bound else ("ready", None)


def _figures(reading: Reading[Capacity]) -> Document:
    value = None if isinstance(reading, Unknown) else reading.value
    if isinstance(value, MemoryCapacity):
        return {"freeMiB": value.free, "totalMiB": value.total, "utilizationPercent": value.utilization}
    percent = value.utilization if isinstance(value, CpuCapacity) else None
    return {"freeMiB": None, "totalMiB": None, "utilizationPercent": percent}


def _free_vram(board: Board, now: Instant) -> str | None:
    """Free memory of all GPUs together; one that is not known makes the sum unknown."""
    gpus = [name for name, resource in board.settings.resources.items() if resource.type in GPU]
    free = 0
    for name in gpus:
        reading = board.capacity[name]
        usable = isinstance(reading, Ready) and now - reading.at <= board.settings.sampling.stale_after
        if not usable or not isinstance(reading, Ready) or not isinstance(reading.value, MemoryCapacity):
            return None
        free += reading.value.free
    return f"{free / 1024:.1f}Gi" if gpus else None
