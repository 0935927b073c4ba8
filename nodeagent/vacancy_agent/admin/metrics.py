"""Prometheus metrics, made anew from plain counts at each scrape; `docs/metrics.md` lists them.

Invariant: a reading that failed has no sample: its series vanishes, it never freezes at the last value. CPU
has no byte capacity, hence no byte series. No label has a value that a borrower chose: upstreams, resources
and scopes are the configuration's, the rest are enums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.admin import metrics_upstreams
from vacancy_agent.admin.exposition import CONTENT_TYPE, counter, gauge, text
from vacancy_agent.core.board import Pressure
from vacancy_agent.core.conditions import Status
from vacancy_agent.core.facts import Evidence, MemoryCapacity, Ready
from vacancy_agent.core.lending import By
from vacancy_agent.core.settings import ResourceType
from vacancy_edge import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vacancy_agent.admin.exposition import Family
    from vacancy_agent.admin.running import Running
    from vacancy_agent.core.facts import Capacity, Instant

MIB = 1 << 20
JUDGED = frozenset({Pressure.CLEAR, Pressure.BUILDING, Pressure.ENGAGED})


def scrape(agent: Running) -> tuple[bytes, str]:
    """The exposition and its content type."""
    return text(families(agent)), CONTENT_TYPE


def families(agent: Running) -> Iterator[Family]:
    """Every family, with its samples of now."""
    yield from _agent(agent)
    yield from _lending(agent)
    yield from _owner(agent)
    yield from _resources(agent)
    yield from _pressure(agent)
    yield from metrics_upstreams.families(agent)
    yield _auth(agent)


def _agent(agent: Running) -> Iterator[Family]:
    info = gauge("agent_info", "1, with the version of the agent.", "version")
    info.add(1, agent.version)
    ready = gauge("ready", "1 while every proxy listens and every sample that is needed is fresh.")
    ready.add(not agent.ready())
    conditions = gauge("condition", "1 where the condition is true, 0 where it is false.", "type")
    for condition in agent.conditions.all():
        if condition.status is not Status.UNKNOWN:
            conditions.add(condition.status is Status.TRUE, condition.type.value)
    abandoned = counter("probes_abandoned", "Programs of probes given up, because they hang in the kernel.")
    abandoned.add(agent.abandoned_probes)
    yield from (info, ready, conditions, abandoned)


def _lending(agent: Running) -> Iterator[Family]:
    wall = agent.host.clock.wall()
    state = agent.host.board.lending(wall)
    allowed = gauge("lending_allowed", "1 while switch, schedule and pauses allow lending.")
    allowed.add(state.allowed)
    held_off = gauge("lending_held_off", "1 for what keeps lending off; of several, what ends last.", "by")
    for by in By:
        held_off.add(state.by is by, by.value)
    ends = gauge("lending_resumes_seconds", "Seconds until what keeps lending off ends by itself.")
    if state.until is not None:
        ends.add(max(0.0, state.until - wall))
    yield from (allowed, held_off, ends)


def _owner(agent: Running) -> Iterator[Family]:
    board, now = agent.host.board, agent.host.clock.now()
    veto = gauge("owner_veto", "1 while the owner's veto is engaged.")
    veto.add(board.veto.engaged)
    age = gauge("presence_age_seconds", "Seconds since the last presence sample that succeeded.")
    if board.presence_at is not None:
        age.add(now - board.presence_at)
    evidence = gauge("presence", "1 for what the last presence sample shows.", "evidence")
    shown = board.presence_shown(now)
    if isinstance(shown, Ready):
        for one in Evidence:
            evidence.add(shown.value.evidence is one, one.value)
    yield from (veto, age, evidence)


def _resources(agent: Running) -> Iterator[Family]:
    board, now = agent.host.board, agent.host.clock.now()
    enabled = gauge("resource_enabled", "1 while the resource is lent.", "resource")
    free = gauge("resource_free_bytes", "Free memory.", "resource")
    total = gauge("resource_total_bytes", "Memory in all.", "resource")
    percent = gauge("resource_utilization_pct", "Utilisation, percent.", "resource")
    age = gauge("resource_sample_age_seconds", "Seconds since the reading was taken.", "resource")
    for name in board.settings.resources:
        enabled.add(board.resource_enabled(name), name)
        reading = _usable(agent, name, now)
        if reading is None:
            continue
        value = reading.value
        age.add(now - reading.at, name)
        if isinstance(value, MemoryCapacity):
            free.add(value.free * MIB, name)
            total.add(value.total * MIB, name)
        if value.utilization is not None:
            percent.add(value.utilization, name)
    yield from (enabled, free, total, percent, age)


def _usable(agent: Running, resource: str, now: Instant) -> Ready[Capacity] | None:
    board = agent.host.board
    reading = board.capacity[resource]
    fresh = isinstance(reading, Ready) and now - reading.at <= board.settings.sampling.stale_after
    return reading if isinstance(reading, Ready) and fresh else None


def _pressure(agent: Running) -> Iterator[Family]:
    board = agent.host.board
    pressed = gauge("resource_pressured", "1 while the owner's own load refuses work.", "resource")
    load = gauge(
        "resource_owner_load_pct", "The owner's load, borrowed work left aside, percent.", "resource"
    )
    threshold = gauge("resource_pressure_threshold_pct", "The load that refuses work, percent.", "resource")
    minutes = gauge(
        "resource_pressure_observed_minutes", "Minutes observed towards a learned threshold.", "resource"
    )
    for name, resource in board.settings.resources.items():
        if board.pressure[name] in JUDGED:
            pressed.add(board.pressure[name] is Pressure.ENGAGED, name)
        view = board.pressure_view.get(name)
        if view is None or resource.type not in {ResourceType.NVIDIA, ResourceType.AMD}:
            continue
        figures = ((load, view.load), (threshold, view.threshold), (minutes, view.calibrated_minutes))
        for family, figure in figures:
            if figure is not None:
                family.add(figure, name)
    yield from (pressed, load, threshold, minutes)


def _auth(agent: Running) -> Family:
    family = counter("auth", "Decisions about tokens.", "scope", "outcome")
    decided = (("allowed", agent.host.auth.allowed), ("denied", agent.host.auth.denied))
    for outcome, counts in decided:
        for scope in Scope:
            family.add(counts[scope.value], scope.value, outcome)
    return family
