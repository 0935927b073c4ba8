"""Which host is to be decided on next, and when. Time is an argument.

Invariant: however many events a host has, it is decided on at most once every `spacing` seconds, never twice
at a time, and never not at all: what comes during a decision makes another one. A failure puts the next try
off, twice as long each time, unless something new happens. Rejected: a plain FIFO, on which a host that flaps
keeps all others waiting.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vacancy_operator.core.facts import Instant

if TYPE_CHECKING:
    from vacancy_operator.core.kinds import HostName

NEVER = Instant(float("inf"))


@dataclass(slots=True)
class _Host:
    due: Instant = NEVER
    started: Instant = field(default_factory=lambda: Instant(float("-inf")))
    failures: int = 0
    busy: bool = False


class WorkQueue:
    """Hosts and when they are due."""

    def __init__(self, *, debounce: float, spacing: float, longest_backoff: float) -> None:
        """All in seconds: wait after the first event, between decisions, and between tries at most."""
        self._debounce = debounce
        self._spacing = spacing
        self._longest = longest_backoff
        self._hosts: dict[HostName, _Host] = {}
        self._heap: list[tuple[Instant, HostName]] = []

    def __len__(self) -> int:
        """How many hosts are due or overdue, later looks not counted."""
        return sum(host.due < NEVER for host in self._hosts.values())

    def depth(self, now: Instant) -> int:
        """How many hosts wait for a decision now."""
        return sum(host.due <= now + self._spacing and not host.busy for host in self._hosts.values())

    def add(self, name: HostName, now: Instant) -> None:
        """Something happened to a host."""
        host = self._hosts.setdefault(name, _Host())
        self._due(name, host, Instant(max(now + self._debounce, host.started + self._spacing)))

    def add_at(self, name: HostName, at: Instant) -> None:
        """A host is to be looked at then, even if nothing happens."""
        self._due(name, self._hosts.setdefault(name, _Host()), at)

    def pop(self, now: Instant) -> HostName | None:
        """A host that is due; it is busy until `done` or `failed`."""
        while self._heap and self._heap[0][0] <= now:
            at, name = heapq.heappop(self._heap)
            host = self._hosts.get(name)
            if host is not None and host.due == at and not host.busy:
                host.due, host.started, host.busy = NEVER, now, True
                return name
        return None

    def done(self, name: HostName) -> None:
        """The decision was carried out."""
        host = self._hosts[name]
        host.busy, host.failures = False, 0
        if host.due < NEVER:
            heapq.heappush(self._heap, (host.due, name))
        else:
            self._hosts[name] = _Host(started=host.started)

    def failed(self, name: HostName, now: Instant) -> Instant:
        """It was not. Returns when it is tried again."""
        host = self._hosts[name]
        wait = min(self._longest, self._spacing * 2.0**host.failures)
        host.busy, host.failures = False, min(host.failures + 1, 30)
        host.due = min(host.due, Instant(now + wait))
        heapq.heappush(self._heap, (host.due, name))
        return host.due

    def forget(self, name: HostName) -> None:
        """The host is gone and nothing is left to do about it."""
        host = self._hosts.get(name)
        if host is not None and not host.busy and host.due == NEVER:
            del self._hosts[name]

    def retry_now(self, now: Instant) -> None:
        """What made things fail is over: try everything again."""
        for name, host in self._hosts.items():
            if host.failures:
                host.failures = 0
                host.due = NEVER
                self._due(name, host, Instant(now + self._debounce))

    def next_due(self) -> Instant:
        """When `pop` will have something; `NEVER`: as far as is known, never."""
        while self._heap:
            at, name = self._heap[0]
            host = self._hosts.get(name)
            if host is not None and host.due == at and not host.busy:
                return at
            heapq.heappop(self._heap)
        return NEVER

    def _due(self, name: HostName, host: _Host, at: Instant) -> None:
        if at < host.due:
            host.due = at
            if not host.busy:
                heapq.heappush(self._heap, (at, name))
