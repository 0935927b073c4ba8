"""Giving back beside a model that remembers every edge and works each answer out from them: 10,000 steps.

The model knows four sentences of the specification: which edge reaches which upstream, that the first edge
fixes the deadline, that work from before an edge is cut at its time or spared, and that an upstream that lets
go is asked once at a time, ten seconds long. Everything that can be seen from outside is compared: who was
cut and what they were told, what was published with which edges, who was asked to unload, what is claimed,
and which upstreams admit.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from standins.hosts import NOON, host, seen, upstream
from standins.long_runs import ten_thousand_steps
from vacancy_agent.core import effects as on
from vacancy_agent.core.board import Board, Pressure
from vacancy_agent.core.facts import Evidence, Instant, Seconds
from vacancy_agent.core.job import JobId
from vacancy_agent.core.lending import LocalPause
from vacancy_agent.core.reclaim import Reclaims
from vacancy_agent.core.settings import Dialect, OnOwnerReturn, OwnerScope, OwnerSettings
from vacancy_agent.core.veto import Direction
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vacancy_agent.core.settings import HostSettings, UpstreamSettings

DRAIN, COMPLETION, UNLOAD = 30.0, 60.0, 10.0
QUIET, STALE = 4.0, 15.0
CARDS = ("gpu0", "gpu1", "ram")
PATIENCE: dict[str, Any] = {"drain_timeout": Seconds(DRAIN), "completion_timeout": Seconds(COMPLETION)}
OLLAMA: dict[str, Any] = {"dialect": Dialect.OLLAMA, "yield_on_veto": True}
UPSTREAMS = (
    upstream("cut", ("gpu0",), on_owner_return=OnOwnerReturn.CANCEL),
    upstream("drain", ("gpu1", "ram"), **OLLAMA),
    upstream("finish", ("gpu0",), on_owner_return=OnOwnerReturn.FINISH, **OLLAMA),
    upstream("patient", ("gpu1",), on_owner_return=OnOwnerReturn.FINISH),
    upstream("always", ("ram",), owner_scope=OwnerScope.RESOURCE),
    upstream("big", ("gpu0", "gpu1"), on_owner_return=OnOwnerReturn.CANCEL, **OLLAMA),
)


@dataclass
class Edge:
    """Somebody wanted the upstream back."""

    at: float
    reason: Reason
    ran: frozenset[int]
    resource: str | None


@dataclass
class Upstream:
    """One upstream as the model sees it."""

    settings: UpstreamSettings
    running: set[int] = field(default_factory=set)
    edges: list[Edge] = field(default_factory=list)
    """Not answered yet."""
    due: float = 0.0
    unload_began: float | None = None
    once_more: bool = False
    attempts: int = 0
    claim: bool | None = None

    @property
    def unloads(self) -> bool:
        return self.settings.yield_on_veto

    @property
    def policy(self) -> OnOwnerReturn:
        return self.settings.on_owner_return

    @property
    def affected(self) -> set[int]:
        return {job for edge in self.edges for job in edge.ran} & self.running


class Model:
    """What must happen, as a list of plain tuples, a step at a time."""

    def __init__(self) -> None:
        self.ups = {one.name: Upstream(replace(one, **PATIENCE)) for one in UPSTREAMS}
        self.now = 100.0
        self.out: list[tuple[Any, ...]] = []

    def edge(self, names: Iterable[str], reason: Reason, resource: str | None = None) -> None:
        for name in names:
            up = self.ups[name]
            cuts = up.policy is not OnOwnerReturn.FINISH and up.running
            if not up.edges and not cuts and not up.unloads:
                continue
            if not up.edges:
                patience = COMPLETION if up.policy is OnOwnerReturn.FINISH else DRAIN
                up.due = self.now + patience
            first = not up.edges
            up.edges.append(Edge(self.now, reason, frozenset(up.running), resource))
            if first and (up.policy is OnOwnerReturn.CANCEL or not up.affected):
                self.proceed(name)
            else:
                self.published(name, "waiting")

    def published(self, name: str, phase: str) -> None:
        edges = tuple(edge.at for edge in self.ups[name].edges)
        self.out.append((name, phase, edges))

    def proceed(self, name: str) -> None:
        up = self.ups[name]
        self.published(name, "proceeding")
        if up.policy is not OnOwnerReturn.FINISH and up.affected:
            cut = tuple(sorted(up.affected))
            self.out.append((name, "cut", cut, up.edges[0].reason))
            up.running -= set(cut)
        up.edges = []
        if up.unloads and up.unload_began is not None:
            up.once_more = True
        elif up.unloads:
            self.ask(name)

    def ask(self, name: str) -> None:
        up = self.ups[name]
        up.attempts += 1
        up.unload_began = self.now
        self.out.append((name, "unload", up.attempts))

    def unload_ended(self, name: str, *, shown: bool) -> None:
        up = self.ups[name]
        up.unload_began = None
        self.report(name, shown=shown)
        if up.once_more:
            up.once_more = False
            self.ask(name)

    def report(self, name: str, *, shown: bool) -> None:
        if self.ups[name].claim is not shown:
            self.ups[name].claim = shown
            self.out.append((name, "claims", shown))

    def ended(self, name: str, job: int) -> None:
        up = self.ups[name]
        counted = job in up.affected
        up.running.discard(job)
        if counted and not up.affected:
            self.proceed(name)

    def tick(self) -> None:
        for name, up in self.ups.items():
            if up.edges and self.now >= up.due:
                self.proceed(name)
            if up.unload_began is not None and self.now >= up.unload_began + UNLOAD:
                self.unload_ended(name, shown=False)

    def answered(self, name: str, attempt: int, *, shown: bool) -> None:
        up = self.ups[name]
        if attempt == up.attempts and up.unload_began is not None:
            self.unload_ended(name, shown=shown)
        elif shown and up.claim is False:
            self.report(name, shown=True)

    def stand_down(self, gone: set[str], *, lends: bool) -> None:
        for name, up in self.ups.items():
            paused = any(edge.reason is Reason.LENDING_DISABLED for edge in up.edges)
            if up.edges and name in gone and (lends or not paused):
                self.published(name, "stood_down")
                up.edges = []

    def admits(self, name: str) -> bool:
        return not self.ups[name].edges and self.ups[name].unload_began is None


class Steps:
    """Does the same to both, and compares what can be seen."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)  # noqa: S311 - no secret
        self.model = Model()
        self.settings = self._settings()
        self.board = Board(self.settings)
        self.reclaims = Reclaims(self.settings)
        self.closed: set[str] = set()
        self.next_job = 1
        self.presence: tuple[float, Evidence] | None = None
        self.seen: Counter[str] = Counter()

    def _settings(self) -> HostSettings:
        ups = [up.settings for up in self.model.ups.values()]
        return host(ups, owner=OwnerSettings(release_after=Seconds(QUIET)))

    def at(self) -> Instant:
        return Instant(self.model.now)

    def active(self, name: str) -> list[JobId]:
        return [JobId(job) for job in self.model.ups[name].running]

    def step(self) -> None:
        kinds = (
            "admit",
            "ends",
            "looks",
            "presses",
            "pauses",
            "resumes",
            "rechecks",
            "passes",
            "answers",
            "policy",
        )
        kind = self.draw.choices(kinds, (14, 5, 8, 8, 1, 4, 8, 8, 5, 1))[0]
        getattr(self, kind)()
        self.model.out = []
        for name in self.model.ups:
            assert (name in self.closed) != self.model.admits(name), name
        claims = {
            name: None if up.unload_began is not None and up.claim else up.claim
            for name, up in self.model.ups.items()
            if up.unload_began is not None or up.claim is not None
        }
        assert self.reclaims.claims() == claims

    def execute(self, effects: on.Effects) -> None:
        """What can be seen of the effects must be what the model says, upstream by upstream."""
        got: list[tuple[Any, ...]] = []
        for effect in effects:
            match effect:
                case on.CloseAdmission(name):
                    self.closed.add(name)
                case on.ReopenAdmission(name):
                    self.closed.remove(name)
                case on.PublishPhase(name, phase, edges, at):
                    assert at == self.model.now
                    got.append((name, phase.value, edges))
                case on.CancelWork(name, jobs, reason):
                    got.append((name, "cut", jobs, reason))
                case on.Unload(name, attempt, deadline):
                    assert deadline == self.model.now + UNLOAD
                    got.append((name, "unload", attempt))
                case on.ReportReclaimed(name, shown):
                    got.append((name, "claims", shown))
                case on.WakeAt(_, at):
                    assert at > self.model.now
        assert got == self.model.out
        self.seen.update(f"{one[0]} {one[1]}" for one in got)

    def admit(self) -> None:
        name = self.draw.choice(sorted(self.model.ups))
        if name not in self.closed and len(self.model.ups[name].running) < 3:
            self.model.ups[name].running.add(self.next_job)
            self.next_job += 1

    def ends(self) -> None:
        jobs = [(name, job) for name, up in self.model.ups.items() for job in up.running]
        if jobs:
            name, job = self.draw.choice(jobs)
            self.model.ended(name, job)
            self.execute(self.reclaims.job_ended(name, JobId(job), self.at()))

    def looks(self) -> None:
        evidence = self.draw.choice([Evidence.PRESENT, Evidence.ABSENT, Evidence.ABSENT, Evidence.UNCLEAR])
        self.presence = (self.model.now, evidence)
        edge = self.board.set_presence(seen(evidence, self.model.now), self.at())
        self._owner(rose=edge is not None and edge.direction is Direction.RISING)

    def _owner(self, *, rose: bool) -> None:
        if rose:
            hosts = [n for n, up in self.model.ups.items() if up.settings.owner_scope is OwnerScope.HOST]
            self.model.edge(hosts, Reason.OWNER_ACTIVE)
            self.execute(self.reclaims.owner_edge(self.active_before(), self.at()))

    def active_before(self) -> Any:
        """Who ran at the edge: the model has taken the cut ones out already."""
        cut = {one[0]: set(one[2]) for one in self.model.out if one[1] == "cut"}
        return lambda name: [JobId(j) for j in self.model.ups[name].running | cut.get(name, set())]

    def presses(self) -> None:
        card = self.draw.choice(CARDS)
        state = self.draw.choice(
            [*[Pressure.CLEAR] * 6, Pressure.BUILDING, Pressure.ENGAGED, Pressure.UNKNOWN]
        )
        was = self.board.pressure[card]
        self.board.set_pressure(card, state)
        if state is Pressure.ENGAGED and was is not Pressure.ENGAGED:
            veto = self.board.veto.engaged
            reached = [
                name
                for name, up in self.model.ups.items()
                if card in up.settings.requires
                and (not veto or up.settings.owner_scope is OwnerScope.RESOURCE)
            ]
            self.model.edge(reached, Reason.RESOURCE_PRESSURED, card)
            effects = self.reclaims.pressure_edge(card, self.active_before(), self.at(), veto=veto)
            self.execute(effects)

    def pauses(self) -> None:
        self.board.set_local_pause(LocalPause(None))
        self.model.edge(self.model.ups, Reason.LENDING_DISABLED)
        self.execute(self.reclaims.lending_edge(self.active_before(), self.at()))

    def resumes(self) -> None:
        self.board.set_local_pause(None)

    def rechecks(self) -> None:
        gone = {name for name, up in self.model.ups.items() if self._gone(up)}
        self.model.stand_down(gone, lends=self.board.local_pause is None)
        self.execute(self.reclaims.recheck(self.board, self.at(), NOON))

    def _gone(self, up: Upstream) -> bool:
        """By admission's own checks, from what was put in."""
        if self.presence is None:
            return False
        at, evidence = self.presence
        if up.settings.owner_scope is OwnerScope.HOST:
            clear = evidence in {Evidence.ABSENT, Evidence.PRESENT} and not self.board.veto.engaged
            if not clear or self.model.now - at > STALE:
                return False
        pressed = {edge.resource for edge in up.edges if edge.resource is not None}
        states = {card: self.board.pressure[card] for card in up.settings.requires}
        if any(states[card] is not Pressure.CLEAR for card in pressed):
            return False
        return not any(state in {Pressure.ENGAGED, Pressure.UNKNOWN} for state in states.values())

    def passes(self) -> None:
        self.model.now += self.draw.choice((0.5, 1.0, 2.0, 2.0, 5.0, 10.0, 31.0))
        self.model.tick()
        self.execute(self.reclaims.tick(self.at()))
        self.model.out = []
        edge = self.board.tick(self.at())
        self._owner(rose=edge is not None)

    def answers(self) -> None:
        asked = [name for name, up in self.model.ups.items() if up.attempts]
        if asked:
            name, shown = self.draw.choice(asked), self.draw.random() < 0.6
            attempt = self.model.ups[name].attempts - (self.draw.random() < 0.2)
            self.model.answered(name, attempt, shown=shown)
            self.execute(self.reclaims.unload_result(name, attempt, self.at(), shown=shown))

    def policy(self) -> None:
        """Another configuration: a reclaim that waits keeps its deadline and follows the new policy then."""
        up = self.model.ups[self.draw.choice(sorted(self.model.ups))]
        up.settings = replace(up.settings, on_owner_return=self.draw.choice(list(OnOwnerReturn)))
        self.settings = self._settings()
        self.board.reconfigure(self.settings)
        self.execute(self.reclaims.reconfigure(self.settings))


@pytest.mark.parametrize("seed", range(2))
def test_ten_thousand_steps(seed: int) -> None:
    steps = ten_thousand_steps(Steps, seed)
    kinds = ("proceeding", "cut", "waiting", "stood_down")
    wanted = [f"drain {kind}" for kind in (*kinds, "unload", "claims")] + [f"always {kind}" for kind in kinds]
    assert min(steps.seen[one] for one in wanted) > 3, steps.seen
