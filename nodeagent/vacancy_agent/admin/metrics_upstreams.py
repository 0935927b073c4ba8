"""The metrics of each upstream: may it be borrowed, what is under way, what became of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.admin.exposition import counter, gauge
from vacancy_agent.core.effects import ReclaimPhase
from vacancy_agent.core.job import Phase, ReleasedBy
from vacancy_agent.core.lendable import lendable
from vacancy_agent.upstreams.listener_state import ListenerState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vacancy_agent.admin.exposition import Family
    from vacancy_agent.admin.running import Running

LIVE = (Phase.FORWARDING, Phase.TRACKING, Phase.HELD)
CONNECTION_EVENTS = ("accepted", "evicted", "turned_away", "malformed")


def families(agent: Running) -> Iterator[Family]:
    """Every family that has the label `upstream`."""
    yield from _standing(agent)
    yield from _work(agent)
    yield from _reclaim(agent)
    yield from _requests(agent)
    yield from _engine(agent)


def _standing(agent: Running) -> Iterator[Family]:
    board, clock = agent.host.board, agent.host.clock
    now, wall = clock.now(), clock.wall()
    lends = gauge("lendable", "1 while a request would be admitted, own work aside.", "upstream")
    bound = gauge("proxy_bound", "1 while the upstream's proxy listens.", "upstream")
    listener = gauge("server_listener", "1 for where the upstream's own server listens.", "upstream", "state")
    unseen = gauge(
        "unseen_gpu_work", "1 while its work runs and none of its processes uses a GPU.", "upstream"
    )
    for name in board.settings.upstreams:
        lends.add(agent.bound(name) and lendable(board, name, now, wall).yes, name)
        bound.add(agent.bound(name), name)
        unseen.add(name in board.unseen_gpu_work, name)
        for state in ListenerState:
            listener.add(agent.server_listener(name) is state, name, state.value)
    yield from (lends, bound, listener, unseen)


def _work(agent: Running) -> Iterator[Family]:
    ledger, now = agent.host.ledger, agent.host.clock.now()
    work = gauge("active_work", "Jobs in the admission ledger.", "upstream", "phase")
    oldest = gauge("hold_oldest_seconds", "Seconds since the oldest held job was admitted.", "upstream")
    freed = counter("holds_freed", "Held jobs freed, by what ended them.", "upstream", "by")
    counts = ledger.counts()
    for name in agent.host.board.settings.upstreams:
        for phase in LIVE:
            work.add(counts.get(name, {}).get(phase, 0), name, phase.value)
        held = [job.since for job in ledger.holds(name)]
        if held:
            oldest.add(now - min(held), name)
        for by in ReleasedBy:
            freed.add(agent.events.freed[name, by.value], name, by.value)
    yield from (work, oldest, freed)


def _reclaim(agent: Running) -> Iterator[Family]:
    phase = gauge("reclaim_phase", "1 for the last decision of the upstream's reclaim.", "upstream", "phase")
    decided = counter("reclaims", "Decisions of the upstream's reclaims.", "upstream", "phase")
    gave = gauge("reclaimed", "1 if it showed that it let go when last asked to unload.", "upstream")
    results = counter("unloads", "Unloads by what came of them, as reported.", "upstream", "result")
    for name in agent.host.board.settings.upstreams:
        published = agent.reclaims.get(name)
        for one in ReclaimPhase:
            phase.add(published is not None and published.phase is one, name, one.value)
            decided.add(agent.events.reclaims[name, one.value], name, one.value)
        shown = agent.unloaded.get(name, (None, ""))[0]
        if shown is not None:
            gave.add(shown, name)
        for result in ("Reclaimed", "UnloadNotConfirmed"):
            results.add(agent.events.unloads[name, result], name, result)
    yield from (phase, decided, gave, results)


def _requests(agent: Running) -> Iterator[Family]:
    admitted = counter("admitted", "Work requests admitted.", "upstream")
    passed = counter("passed", "Requests forwarded without the gate.", "upstream")
    ended = counter("requests", "Forwarded work requests by their end.", "upstream", "outcome")
    refused = counter("refusals", "Requests refused.", "upstream", "reason")
    for name, counts in agent.host.counters.items():
        admitted.add(counts.admitted, name)
        passed.add(counts.passed, name)
        for outcome, number in counts.outcomes.items():
            ended.add(number, name, outcome.value)
        for reason, number in counts.refused.items():
            refused.add(number, name, reason.value)
    yield from (admitted, passed, ended, refused)


def _engine(agent: Running) -> Iterator[Family]:
    events = counter("connections", "What became of clients' connections.", "upstream", "event")
    tunnels = gauge("tunnels", "WebSocket tunnels that are open.", "upstream")
    for name, seen in agent.engine_counters().items():
        for event in CONNECTION_EVENTS:
            events.add(getattr(seen, event), name, event)
        tunnels.add(seen.tunnels, name)
    yield from (events, tunnels)
