"""The pressure of every GPU of a host: samples in, states onto the board, edges out.

Invariant: what a sample may do is decided here alone, by where it came from: a load by process may teach the
threshold and judge; a total may judge under `mode: fixed` and only while no borrowed work runs; what cannot
be had leaves a resource unguarded only where nobody asked for a guard. The failure this prevents is borrowed
work that teaches the machine to lend more, or that is cut by its own load. Rejected: guards that each look at
the ledger and the clock, of which one would sooner or later forget to.

Whether pressure applies to a resource:

1. `mode: off`, or no GPU: off.
2. A `pressure` block was written out: it is required, and what cannot be sampled is unknown.
3. Neither: off once it is known that the platform cannot tell whose load it is, required once it could.

Usage::

    pressures = Pressures(settings, board)
    outcome = pressures.observe("gpu", sample, Around(now, awake, working={"ollama"}))
    for resource, edge in pressures.tick(now): ...   # about every second: a probe that hangs answers nothing
    pressures.outdate()                              # the machine slept
    pressures.reconfigure(settings)                  # after the board; guards of what did not change stay
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from vacancy_agent.core.board import Pressure, PressureView
from vacancy_agent.core.facts import Percent, Ready, Seconds
from vacancy_agent.core.learned import Learned, Timed
from vacancy_agent.core.owner_load import Attributed, Failed, HiddenUsers, NotPossible, Total
from vacancy_agent.core.pressure import Guard, max_gap
from vacancy_agent.core.settings import PressureMode, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from vacancy_agent.core.board import Board
    from vacancy_agent.core.facts import Instant
    from vacancy_agent.core.learned import Calibration
    from vacancy_agent.core.owner_load import LoadSample
    from vacancy_agent.core.pressure import PressureEdge
    from vacancy_agent.core.settings import HostSettings, ResourceSettings

GPU = frozenset({ResourceType.NVIDIA, ResourceType.AMD})
LINGERS = Seconds(2.0)
"""A total load is an average over up to a second: so long after borrowed work it may contain some of it."""
UNSEEN_SAMPLES = 3
"""Samples with work under way and no process of its server on a GPU, after which that is told."""


@dataclass(frozen=True, slots=True)
class Around:
    """What else is to be known when a sample is judged."""

    now: Instant
    awake: Seconds
    """The clock that stands still in suspend."""
    working: AbstractSet[str] = frozenset()
    """Upstreams with borrowed work that has not ended for certain, held work included."""
    local: AbstractSet[str] = frozenset()
    """Upstreams whose target names this machine."""
    only_held: AbstractSet[str] = frozenset()
    """Those of `working` that may have nothing to do any more: all their work is held."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a sample led to."""

    edge: PressureEdge | None = None
    discarded: str | None = None
    """Why a calibration that was kept cannot be used for this device."""
    unseen: tuple[str, ...] = ()
    """Upstreams whose work was found to run where it cannot be seen."""


@dataclass(slots=True, eq=False)
class _Guarded:
    """One resource."""

    settings: ResourceSettings
    guard: Guard
    timed: Timed
    applies: bool | None
    """None: not known yet (rule 3)."""
    learned: Learned | None = None
    load: Percent | None = None
    why: str = "the owner's load has not been sampled yet"
    unknown_for: Seconds | None = None
    total_at: Instant | None = None
    hidden: HiddenUsers = field(default_factory=HiddenUsers)

    @property
    def learns(self) -> bool:
        return self.settings.pressure.mode is PressureMode.LEARNED

    def state(self) -> Pressure:
        return Pressure.OFF if self.applies is False else self.guard.state

    def threshold(self) -> Percent | None:
        if not self.learns:
            return self.settings.pressure.threshold
        return None if self.learned is None else Percent(round(self.learned.threshold, 2))

    def view(self) -> PressureView:
        state = self.state()
        if state is Pressure.OFF:
            return PressureView("off", why=self.why)
        minutes = None
        if self.learns:
            minutes = 0.0 if self.learned is None else round(self.learned.minutes, 1)
        shown = "suspended" if self.guard.suspended else shown_as(state).value
        return PressureView(shown, self.threshold(), minutes, self.load, self.why, self.unknown_for)


class Pressures:
    """The guards of one host."""

    def __init__(self, settings: HostSettings, board: Board) -> None:
        self._board = board
        self._settings = settings
        self._guarded: dict[str, _Guarded] = {}
        self._unseen: defaultdict[str, int] = defaultdict(int)
        self.kept: dict[str, Calibration] = {}
        """Calibrations of an earlier run by resource, until the device is known that they are for."""
        self.reconfigure(settings)

    def reconfigure(self, settings: HostSettings) -> None:
        """Take over new settings; call it after the board's."""
        old, self._settings = self._settings, settings
        gap = max_gap(settings.sampling.pressure_interval)
        same_gap = gap == max_gap(old.sampling.pressure_interval)
        before, self._guarded = self._guarded, {}
        for name, resource in settings.resources.items():
            if not _is_judged(resource):
                continue
            known = before.get(name)
            if known is not None and known.settings == resource and same_gap:
                self._guarded[name] = known
            else:
                self._guarded[name] = _renewed(known, resource, gap)
            self._show(name)
        for name, known in before.items():
            self._dropped(name, known)
        self._unseen = defaultdict(int, {n: c for n, c in self._unseen.items() if n in settings.upstreams})

    def observe(self, resource: str, sample: LoadSample, around: Around) -> Outcome:
        """Judge one answer of a resource's probe."""
        one = self._guarded.get(resource)
        if one is None:
            return Outcome()
        one.unknown_for = None
        outcome = self._judged(one, sample, around)
        self._show(resource)
        return outcome

    def tick(self, now: Instant) -> Iterator[tuple[str, PressureEdge]]:
        """Look at the clock: a probe that hangs says nothing, and its silence is an answer too."""
        for name, one in self._guarded.items():
            if one.applies and one.guard.overdue(now):
                one.load, one.why = None, "the probe of the owner's load does not come back"
                edge = _silent(one, now)
                self._show(name)
                if edge is not None:
                    yield name, edge

    def outdate(self) -> None:
        """The machine slept: nothing is known of any load until it is sampled again."""
        for name, one in self._guarded.items():
            one.guard.outdate()
            one.timed.interrupt()
            one.load, one.why = None, "the machine slept"
            self._show(name)

    def calibrations(self) -> Mapping[str, Calibration]:
        """What was learned, by resource, and what was kept of resources not sampled yet."""
        learned = {
            name: one.learned.saved() for name, one in self._guarded.items() if one.learned is not None
        }
        return {**self.kept, **learned}

    def _dropped(self, name: str, known: _Guarded) -> None:
        """What becomes of an earlier guard: what it learned waits for its device to come back."""
        now = self._guarded.get(name)
        if known.learned is not None and (now is None or now.learned is not known.learned):
            self.kept[name] = known.learned.saved()
        if now is None and name in self._settings.resources:
            self._board.set_pressure(name, Pressure.OFF, PressureView("off"))

    # One sample, by its kind.

    def _judged(self, one: _Guarded, sample: LoadSample, around: Around) -> Outcome:
        match sample:
            case Attributed():
                trusted = one.hidden.judge(sample, explained=self._explained(one, sample, around))
                if not isinstance(trusted, Attributed):
                    return self._judged(one, trusted, around)
                return self._attributed(one, trusted, around)
            case Total():
                return self._total(one, sample, around)
            case NotPossible(why):
                if not one.settings.pressure.required and not one.hidden.ever_seen:
                    one.applies = False  # rule 3
                return self._missed(one, why, around)
            case Failed(why):
                return self._missed(one, why, around)
        assert_never(sample)

    def _missed(self, one: _Guarded, why: str, around: Around) -> Outcome:
        one.load, one.why = None, why
        if one.applies is False:
            return Outcome()
        return Outcome(_silent(one, around.now))

    def _total(self, one: _Guarded, sample: Total, around: Around) -> Outcome:
        threshold = one.settings.pressure.threshold
        if one.learns or threshold is None:
            return self._judged(one, NotPossible("only the total load can be read, not whose it is"), around)
        if sample.at == one.total_at:
            return Outcome()  # the same reading again
        one.total_at = sample.at
        name = one.settings.name
        if self._working_on(name, around) or self._lingers(name, sample.at):
            one.load, one.why = None, "only the total load can be read, and borrowed work is part of it"
            one.guard.suspend(sample.at)
            return Outcome()
        one.load, one.why = sample.load, ""
        return Outcome(one.guard.sample(sample.load, threshold, sample.at))

    def _attributed(self, one: _Guarded, sample: Attributed, around: Around) -> Outcome:
        one.applies = True  # rule 3
        load = sample.owner
        one.load, one.why = load, ""
        unseen = self._look_for_unseen(one.settings.name, sample, around)
        if not one.learns:
            threshold = one.settings.pressure.threshold
            assert threshold is not None  # noqa: S101 - the contract: fixed has a threshold
            return Outcome(one.guard.sample(load, threshold, sample.at), unseen=unseen)
        discarded = self._identify(one, sample.device)
        learned = one.learned
        assert learned is not None  # noqa: S101 - just identified
        if self._may_learn(one.settings.name, sample, around):
            learned.observe(load, one.timed.since_last(around.awake))
        else:
            one.timed.interrupt()
        if not learned.calibrated:
            one.why = "the owner's usual load is still being learned"
        edge = one.guard.sample(load, learned.threshold, sample.at, calibrated=learned.calibrated)
        return Outcome(edge, discarded, unseen)

    def _identify(self, one: _Guarded, device: str) -> str | None:
        """Have a threshold for this very device; returns why a kept one is none."""
        if one.learned is not None and one.learned.device == device:
            return None
        cap = one.settings.pressure.cap
        kept = self.kept.pop(one.settings.name, None)
        if kept is None and one.learned is not None:
            kept = one.learned.saved()
        if kept is not None and kept.fits(device):
            one.learned = Learned.restore(kept, cap)
            return None
        one.learned = Learned(device, cap)
        if kept is None:
            return None
        return "another device" if kept.device != device else "another version, or damaged"

    def _may_learn(self, resource: str, sample: Attributed, around: Around) -> bool:
        presence = self._board.presence
        bound = self._settings.sampling.stale_after
        fresh = isinstance(presence, Ready) and around.now - presence.at <= bound
        return fresh and self._working_on(resource, around) <= sample.seen

    def _explained(self, one: _Guarded, sample: Attributed, around: Around) -> bool:
        name = one.settings.name
        on_it = not self._working_on(name, around).isdisjoint(sample.seen)
        return on_it or (sample.total is not None and self._lingers(name, sample.total.at))

    def _lingers(self, resource: str, at: Instant) -> bool:
        return at - self._board.last_disturbance(resource) < LINGERS

    def _working_on(self, resource: str, around: Around) -> AbstractSet[str]:
        upstreams = self._settings.upstreams
        return {up for up in around.working if up in upstreams and resource in upstreams[up].requires}

    def _look_for_unseen(self, resource: str, sample: Attributed, around: Around) -> tuple[str, ...]:
        """Upstreams that just became suspect; one that is seen on a GPU is so no more."""
        for name in sample.seen:
            self._unseen.pop(name, None)
            self._board.unseen_gpu_work.discard(name)
            self._board.served_load[resource, name] = Ready(sample.of(name), sample.at)
        found = []
        at_work = (self._working_on(resource, around) & around.local) - around.only_held
        for name in sorted(at_work - sample.seen):
            self._unseen[name] += 1
            if self._unseen[name] >= UNSEEN_SAMPLES and name not in self._board.unseen_gpu_work:
                self._board.unseen_gpu_work.add(name)
                found.append(name)
        return tuple(found)

    def _show(self, resource: str) -> None:
        one = self._guarded[resource]
        self._board.set_pressure(resource, one.state(), one.view())


def _silent(one: _Guarded, now: Instant) -> PressureEdge | None:
    """No usable answer: whoever is refused is told since when."""
    one.timed.interrupt()
    edge = one.guard.missed(now)
    one.unknown_for = gone = one.guard.unknown_for(now)
    if gone is not None:
        one.why += f"; unknown for {gone:.0f} s"
    return edge


def shown_as(state: Pressure) -> Pressure:
    """A load that only builds up still admits: for whoever looks that is clear."""
    return Pressure.CLEAR if state is Pressure.BUILDING else state


def _is_judged(resource: ResourceSettings) -> bool:
    return resource.type in GPU and resource.enabled and resource.pressure.mode is not PressureMode.OFF


def _renewed(known: _Guarded | None, resource: ResourceSettings, gap: Seconds) -> _Guarded:
    """A guard by new settings; what was learned of the same device stays."""
    pressure = resource.pressure
    guard = Guard(pressure.engage_after, pressure.release_after, gap)
    one = _Guarded(resource, guard, Timed(gap), True if pressure.required else None)
    if known is not None and known.learned is not None and _same_device(known, resource):
        one.learned, one.hidden = known.learned, known.hidden
        one.learned.recap(pressure.cap)
    return one


def _same_device(known: _Guarded, resource: ResourceSettings | None) -> bool:
    was = known.settings
    return resource is not None and (was.type, was.device) == (resource.type, resource.device)
