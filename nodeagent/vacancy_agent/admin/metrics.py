"""Prometheus metrics, made anew from plain counts at each scrape.

A reading that failed has no sample: its series vanishes, it never freezes at the last value. CPU has no byte
capacity, hence no byte series.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from vacancy_agent.core.board import Pressure
from vacancy_agent.core.facts import MemoryCapacity, Ready
from vacancy_agent.core.job import Phase
from vacancy_agent.core.lendable import lendable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.core import Metric

    from vacancy_agent.admin.running import Running
    from vacancy_agent.core.facts import Capacity, Instant

MIB = 1 << 20
JUDGED = frozenset({Pressure.CLEAR, Pressure.BUILDING, Pressure.ENGAGED})
LIVE = (Phase.FORWARDING, Phase.TRACKING, Phase.HELD)


def scrape(agent: Running) -> tuple[bytes, str]:
    """The exposition and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Snapshot(agent))
    return generate_latest(registry), CONTENT_TYPE_LATEST


class _Snapshot(Collector):
    def __init__(self, agent: Running) -> None:
        self._agent = agent

    def collect(self) -> Iterable[Metric]:
        """Every family."""
        yield from _owner(self._agent)
        yield from _resources(self._agent)
        yield from _pressures(self._agent)
        yield from _upstreams(self._agent)
        yield from _requests(self._agent)
        yield from _engine(self._agent)


def _gauge(name: str, about: str, labels: tuple[str, ...] = ()) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"vacancy_{name}", about, labels=labels)


def _counter(name: str, about: str, labels: tuple[str, ...]) -> CounterMetricFamily:
    return CounterMetricFamily(f"vacancy_{name}", about, labels=labels)


def _owner(agent: Running) -> Iterator[Metric]:
    board, clock = agent.host.board, agent.host.clock
    allowed = _gauge("lending_allowed", "1 while switch, schedule and pauses allow lending.")
    allowed.add_metric((), float(board.lending(clock.wall()).allowed))
    yield allowed
    veto = _gauge("owner_veto", "1 while the owner's veto is engaged.")
    veto.add_metric((), float(board.veto.engaged))
    yield veto
    if board.presence_at is not None:
        age = _gauge("presence_age_seconds", "Seconds since the last presence sample that succeeded.")
        age.add_metric((), clock.now() - board.presence_at)
        yield age


def _resources(agent: Running) -> Iterator[Metric]:
    board, now = agent.host.board, agent.host.clock.now()
    enabled = _gauge("resource_enabled", "1 while the resource is lent.", ("resource",))
    free = _gauge("resource_free_bytes", "Free memory.", ("resource",))
    total = _gauge("resource_total_bytes", "Memory in all.", ("resource",))
    percent = _gauge("resource_utilization_pct", "Utilisation, percent.", ("resource",))
    age = _gauge("resource_sample_age_seconds", "Seconds since the reading was taken.", ("resource",))
    pressed = _gauge("resource_pressured", "1 while the owner's own load refuses work.", ("resource",))
    for name in board.settings.resources:
        if board.pressure[name] in JUDGED:
            pressed.add_metric((name,), float(board.pressure[name] is Pressure.ENGAGED))
        enabled.add_metric((name,), float(board.resource_enabled(name)))
        reading = _usable(agent, name, now)
        if reading is None:
            continue
        value = reading.value
        age.add_metric((name,), now - reading.at)
        if isinstance(value, MemoryCapacity):
            free.add_metric((name,), value.free * MIB)
            total.add_metric((name,), value.total * MIB)
        if value.utilization is not None:
            percent.add_metric((name,), value.utilization)
    yield from (enabled, free, total, percent, age, pressed)


def _pressures(agent: Running) -> Iterator[Metric]:
    """Only what is known just now: a load that cannot be read has no sample."""
    load = _gauge("resource_owner_load_pct", "The owner's load, as attributed.", ("resource",))
    threshold = _gauge("resource_pressure_threshold_pct", "Load that refuses work.", ("resource",))
    minutes = _gauge("resource_calibrated_minutes", "Minutes observed to learn from.", ("resource",))
    for name, view in agent.host.board.pressure_view.items():
        for gauge, value in (
            (load, view.load),
            (threshold, view.threshold),
            (minutes, view.calibrated_minutes),
        ):
            if value is not None:
                gauge.add_metric((name,), value)
    yield from (load, threshold, minutes)


def _usable(agent: Running, resource: str, now: Instant) -> Ready[Capacity] | None:
    board = agent.host.board
    reading = board.capacity[resource]
    fresh = isinstance(reading, Ready) and now - reading.at <= board.settings.sampling.stale_after
    return reading if isinstance(reading, Ready) and fresh else None


def _upstreams(agent: Running) -> Iterator[Metric]:
    host = agent.host
    now, wall = host.clock.now(), host.clock.wall()
    lends = _gauge("lendable", "1 while a request would be admitted, own work aside.", ("upstream",))
    bound = _gauge("proxy_bound", "1 while the upstream's proxy listens.", ("upstream",))
    work = _gauge("active_work", "Jobs in the admission ledger.", ("upstream", "phase"))
    gave = _gauge("reclaimed", "1 if it showed that it let go when last asked to unload.", ("upstream",))
    counts = host.ledger.counts()
    for name in host.board.settings.upstreams:
        lends.add_metric((name,), float(agent.bound(name) and lendable(host.board, name, now, wall).yes))
        bound.add_metric((name,), float(agent.bound(name)))
        for phase in LIVE:
            work.add_metric((name, phase.value), counts.get(name, {}).get(phase, 0))
        if (shown := agent.unloaded.get(name, (None, ""))[0]) is not None:
            gave.add_metric((name,), float(shown))
    yield from (lends, bound, work, gave)


def _requests(agent: Running) -> Iterator[Metric]:
    admitted = _counter("admitted", "Work requests admitted.", ("upstream",))
    passed = _counter("passed", "Requests forwarded without the gate.", ("upstream",))
    ended = _counter("requests", "Forwarded work requests by their end.", ("upstream", "outcome"))
    refused = _counter("refusals", "Requests refused.", ("upstream", "reason"))
    for name, counts in agent.host.counters.items():
        admitted.add_metric((name,), counts.admitted)
        passed.add_metric((name,), counts.passed)
        for outcome, number in counts.outcomes.items():
            ended.add_metric((name, outcome.value), number)
        for reason, number in counts.refused.items():
            refused.add_metric((name, reason.value), number)
    auth = _counter("auth", "Decisions about tokens.", ("scope", "outcome"))
    for scope, number in agent.host.auth.allowed.items():
        auth.add_metric((scope, "allowed"), number)
    for scope, number in agent.host.auth.denied.items():
        auth.add_metric((scope, "denied"), number)
    yield from (admitted, passed, ended, refused, auth)


def _engine(agent: Running) -> Iterator[Metric]:
    events = _counter("connections", "What became of clients' connections.", ("upstream", "event"))
    for name, seen in agent.engine_counters().items():
        for event in ("accepted", "evicted", "turned_away", "malformed"):
            events.add_metric((name, event), getattr(seen, event))
    yield events
