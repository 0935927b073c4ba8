"""Figures of the operator, in a registry of their own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest


class Metrics:
    """What /metrics tells."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.queue_depth = Gauge(
            "vacancy_operator_queue_depth", "Hosts that wait for a decision.", registry=registry
        )
        self.reconciles = Histogram(
            "vacancy_operator_reconcile_seconds", "Time of one decision and its writes.", registry=registry
        )
        self.errors = Counter(
            "vacancy_operator_reconcile_errors",
            "Decisions whose writes failed, by cause.",
            ["cause"],
            registry=registry,
        )
        self.writes = Counter(
            "vacancy_operator_api_writes", "Writes sent, by kind.", ["kind", "verb"], registry=registry
        )
        self.events = Counter(
            "vacancy_operator_watch_events", "Watch events, by kind.", ["kind"], registry=registry
        )
        self.missed = Counter(
            "vacancy_operator_watch_missed",
            "Changes that a full list found and the watch had not told, by kind.",
            ["kind"],
            registry=registry,
        )
        self.active = Gauge(
            "vacancy_operator_active", "1: this replica writes; 0: it stands by.", registry=registry
        )
        self.silence = Gauge(
            "vacancy_operator_last_contact_seconds", "Age of the last event or full list.", registry=registry
        )
        self.hosts = Gauge("vacancy_operator_hosts", "LendingHosts.", registry=registry)

    def wrote(self, kind: str, verb: str) -> None:
        """A write was sent."""
        self.writes.labels(kind, verb).inc()

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)
