"""What is known now: readings, the owner's veto, switches, and what borrowed work did to the readings.

Invariant: one loop owns the board, and whatever could change a verdict raises `version`, so a cached verdict
can be trusted while the version stands and its `valid_until` has not come. A reading never turns from
unknown into a number, and none taken before a suspend counts after it. Rejected: a lock and readers in
threads, with verdicts formed from two half-written states.

Usage::

    board = Board(settings)
    edge = board.set_presence(Ready(Presence(...), at), now)   # Edge | None, feed it to core.reclaim
    board.set_capacity("gpu0", Ready(MemoryCapacity(free, total), at))  # `at`: when the probe STARTED
    edge = board.tick(now)                                     # every poll: presence that grew too old
    board.suspending("about to sleep"); board.resumed(now)     # logind PrepareForSleep, or a clock jump

`now` is on the clock that counts suspend. Work on resources is noted by the ledger, not by callers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from vacancy_agent.core.contexts import Contexts
from vacancy_agent.core.facts import Instant, MemoryCapacity, Percent, Ready, Stale, Unknown
from vacancy_agent.core.lending import Lending, LocalPause, lending
from vacancy_agent.core.priors import Priors
from vacancy_agent.core.settings import PressureMode, ResourceSettings
from vacancy_agent.core.veto import Edge, Veto

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vacancy_agent.core.facts import Capacity, Presence, Reading, Seconds, WallTime
    from vacancy_agent.core.settings import HostSettings
    from vacancy_agent.core.shown import Shown

T = TypeVar("T")
NOT_TAKEN = Unknown("not taken yet")
_NEVER = Instant(float("-inf"))


class Pressure(StrEnum):
    """The owner's load on one resource, as judged elsewhere."""

    OFF = "off"
    UNKNOWN = "unknown"
    """Required, and nothing samples it now: refuses as unmeasured."""
    CALIBRATING = "calibrating"
    CLEAR = "clear"
    BUILDING = "building"
    """At or above the threshold, not yet for long enough: admits, but no reclaim stands down on it."""
    ENGAGED = "engaged"


@dataclass(frozen=True, slots=True)
class PressureView:
    """What people are shown of a resource's pressure; the gate takes the refusal's words from it."""

    shown: str
    """off, suspended, unknown, calibrating, clear or engaged."""
    threshold: Percent | None = None
    """Load that engages; None: there is none yet, or no pressure is judged."""
    calibrated_minutes: float | None = None
    """Minutes observed towards a learned threshold; None where none is learned."""
    load: Percent | None = None
    """The owner's load as last read; None while it is unknown."""
    why: str = ""
    """Why it is unknown, suspended or off, for people."""
    unknown_for: Seconds | None = None
    """How long the load has been unknown after it was known once."""


class Board:
    """The one picture of the host that admission judges by."""

    def __init__(self, settings: HostSettings) -> None:
        self.settings = settings
        self.version = 0
        self.capacity_writes = 0
        """How many of the versions brought nothing but a capacity that was read again."""
        self.capacity: dict[str, Reading[Capacity]] = dict.fromkeys(settings.resources, NOT_TAKEN)
        self.pressure = {name: _default_pressure(res) for name, res in settings.resources.items()}
        self.pressure_view: dict[str, PressureView] = {}
        """By resource; one that is missing has nothing to show beyond its state."""
        self.unseen_gpu_work: set[str] = set()
        """Upstreams whose work ran while no process of their tree used a GPU."""
        self.served_load: dict[tuple[str, str], Ready[Percent]] = {}
        """By resource and upstream, what the upstream's own processes used of a GPU when it was last seen."""
        self.residency: dict[str, Reading[Shown]] = {}
        self.priors = Priors()
        """What models took from free memory so far."""
        self.contexts = Contexts()
        """Which context a request is known to reuse; they belong to the models, not to a configuration."""
        self.presence: Reading[Presence] = NOT_TAKEN
        self.presence_sampled = False
        """An attempt was made since the start, whatever came of it."""
        self.presence_at: Instant | None = None
        """When the last presence sample that succeeded was taken."""
        self.veto = Veto(settings.owner.release_after)
        self.local_pause: LocalPause | None = None
        self.asleep = False
        self.unread: set[str] = set()
        """Resources whose capacity was not read since the last borrowed job on them ended."""
        self._switched_off: set[str] = set()
        self._valid_from = _NEVER
        self._work: set[str] = set()
        self._before: dict[str, Ready[Capacity]] = {}
        self._ended: dict[str, Instant] = {}
        self._let_go: dict[str, Instant] = {}
        self._lending: tuple[WallTime, Lending] | None = None

    # Readings

    def set_capacity(self, resource: str, reading: Reading[Capacity]) -> None:
        """Write a capacity reading; an older one than the known is ignored, one before a suspend is stale."""
        known = self.capacity.get(resource, NOT_TAKEN)
        if isinstance(reading, Ready) and isinstance(known, Ready) and reading.at < known.at:
            return
        self.version += 1
        self.capacity[resource] = judged = self._judged(reading)
        if isinstance(judged, Ready) and isinstance(known, Ready):
            self.capacity_writes += 1
        if self.priors.watches:
            self._measure(resource, reading)
        if isinstance(reading, Ready) and reading.at > self._ended.get(resource, _NEVER):
            self.unread.discard(resource)
            if resource not in self._work:
                self._before.pop(resource, None)

    def _measure(self, resource: str, reading: Reading[Capacity]) -> None:
        """What the models that run took; for the last time with the first reading after the last job."""
        if not isinstance(reading, Ready) or not isinstance(reading.value, MemoryCapacity):
            return
        self.priors.sampled(resource, reading.value.free)
        if resource not in self._work and reading.at > self._ended.get(resource, _NEVER):
            self.priors.ended((resource,))

    def set_presence(self, reading: Reading[Presence], now: Instant) -> Edge | None:
        """Write a presence reading; returns the veto edge it causes.

        A sample that took longer than the freshness bound is discarded: it says nothing about now.
        """
        bound = self.settings.sampling.stale_after
        if isinstance(reading, Ready):
            late = now - reading.at > bound
            superseded = isinstance(self.presence, Ready) and reading.at < self.presence.at
            if late or superseded:
                return self.tick(now)
        self.version += 1
        self.presence = judged = self._judged(reading)
        self.presence_sampled = True
        if not isinstance(judged, Ready):
            return self.tick(now)
        self.presence_at = judged.at
        return self.veto.observe(judged)

    def tick(self, now: Instant) -> Edge | None:
        """Look at the clock: a presence sample that grew too old engages the veto."""
        at = self.presence_at
        if at is None or now - at <= self.settings.sampling.stale_after:
            return None
        edge = self.veto.lost_sight(now, "the owner's presence could not be read for too long")
        if edge is not None:
            self.version += 1
        return edge

    def presence_shown(self, now: Instant) -> Reading[Presence]:
        """The presence reading as people may be shown it: one that grew too old says nothing about now."""
        known = self.presence
        if isinstance(known, Ready) and now - known.at > self.settings.sampling.stale_after:
            return Stale(known.value, known.at, "the last presence sample is too old")
        return known

    def set_pressure(self, resource: str, state: Pressure, view: PressureView | None = None) -> None:
        """Write the judgement of the owner's load on a resource, and what is shown of it."""
        if view is not None:
            self.pressure_view[resource] = view
        if self.pressure[resource] is not state:
            self.version += 1
            self.pressure[resource] = state

    def gpu_use(self, upstream: str, now: Instant, within: Seconds) -> Percent | None:
        """Load of the upstream's processes on a GPU by readings of the last seconds; None: it is not told.

        Where it was told once and cannot be read now it may be anything: the whole GPU.
        """
        told = {resource for resource, name in self.served_load if name == upstream}
        if any(self.pressure.get(resource) is Pressure.UNKNOWN for resource in told):
            return Percent(100.0)
        loads = [one for (_, name), one in self.served_load.items() if name == upstream]
        return max((one.value for one in loads if now - one.at <= within), default=None)

    def set_residency(self, upstream: str, reading: Reading[Shown]) -> None:
        """Write what an upstream showed of its resident model; leave it out where it cannot show any."""
        self.version += 1
        self.residency[upstream] = self._judged(reading)

    def suspending(self, why: str = "the machine is about to sleep") -> None:
        """Nothing is known from here on until `resumed`."""
        self.asleep = True
        self._outdate(why)

    def resumed(self, now: Instant) -> None:
        """The machine slept: every reading is stale until taken again, also those still under way."""
        self.asleep = False
        self._valid_from = now
        self._outdate("the machine slept")

    # Switches

    def set_local_pause(self, pause: LocalPause | None) -> None:
        """Pause lending at this machine, or resume it. It does not touch the cluster's pause."""
        self.version += 1
        self.local_pause = pause
        self._lending = None

    def set_resource_enabled(self, resource: str, enabled: bool) -> None:
        """The runtime switch of one resource. It cannot enable what the specification disables."""
        self.version += 1
        (self._switched_off.discard if enabled else self._switched_off.add)(resource)

    def resource_enabled(self, resource: str) -> bool:
        """Both the specification and the runtime switch allow the resource."""
        return resource not in self._switched_off and self.settings.resources[resource].enabled

    def lending(self, wall: WallTime) -> Lending:
        """The four lending switches at `wall`, kept until they can change."""
        kept = self._lending
        if kept is not None and kept[0] <= wall < kept[1].changes_at:
            return kept[1]
        answer = lending(self.settings.lending, self.local_pause, wall)
        self._lending = (wall, answer)
        return answer

    def reconfigure(self, settings: HostSettings) -> None:
        """Take over new settings; readings of what changed its identity or its judgement start anew."""
        old, self.settings = self.settings, settings
        self.version += 1
        self._lending = None
        kept = {n for n, res in settings.resources.items() if _same_device(old.resources.get(n), res)}
        self.capacity = {n: self.capacity[n] if n in kept else NOT_TAKEN for n in settings.resources}
        self.pressure = {
            n: self.pressure[n]
            if n in kept and old.resources[n].pressure == res.pressure
            else _default_pressure(res)
            for n, res in settings.resources.items()
        }
        self.pressure_view = {n: view for n, view in self.pressure_view.items() if n in kept}
        self.unseen_gpu_work &= settings.upstreams.keys()
        self.residency = {
            n: r for n, r in self.residency.items() if settings.upstreams.get(n) == old.upstreams.get(n)
        }
        self.veto.release_after = settings.owner.release_after
        if settings.owner != old.owner:
            self.presence, self.presence_sampled = Unknown("the configuration changed"), False

    # Borrowed work, noted by the ledger

    def work_began(self, resource: str) -> None:
        """The first borrowed job took the resource: remember how it looked before."""
        known = self.capacity.get(resource)
        if resource not in self.unread:
            self._before.pop(resource, None)
            if isinstance(known, Ready):
                self._before[resource] = known
        self._work.add(resource)

    def work_ended(self, resource: str, now: Instant) -> None:
        """The last borrowed job left the resource: what was read before `now` shows the job, not the card."""
        self._work.discard(resource)
        self._ended[resource] = now
        self.unread.add(resource)

    @property
    def awake_since(self) -> Instant:
        """When the machine last woke; minus infinity: it did not sleep."""
        return self._valid_from

    def let_go(self, resources: Iterable[str], now: Instant) -> None:
        """An upstream was asked to unload: what it showed before proves nothing any more."""
        for resource in resources:
            self._let_go[resource] = now

    def last_disturbance(self, resource: str) -> Instant:
        """When a job ended on the resource or an unload was asked for; minus infinity: never."""
        return max(self._ended.get(resource, _NEVER), self._let_go.get(resource, _NEVER))

    def capacity_aside(self, resource: str, now: Instant) -> Reading[Capacity]:
        """The capacity reading with the lender's own work left aside: the last one before it.

        It counts as taken now while the work lasts, and until a sample after it had time to come.
        """
        before = self._before.get(resource)
        if before is not None:
            waiting = now - self._ended.get(resource, _NEVER) <= self.settings.sampling.stale_after
            if resource in self._work or (waiting and resource in self.unread):
                return Ready(before.value, now)
        return self.capacity[resource]

    def _judged(self, reading: Reading[T]) -> Reading[T]:
        if isinstance(reading, Ready) and (self.asleep or reading.at < self._valid_from):
            return Stale(reading.value, reading.at, "taken before the machine slept")
        return reading

    def _outdate(self, why: str) -> None:
        self.version += 1
        self.capacity = {name: _outdated(r, why) for name, r in self.capacity.items()}
        self.residency = {name: _outdated(r, why) for name, r in self.residency.items()}
        self.presence = _outdated(self.presence, why)
        self._before.clear()


def _outdated(reading: Reading[T], why: str) -> Reading[T]:
    return Stale(reading.value, reading.at, why) if isinstance(reading, Ready) else reading


def _default_pressure(resource: ResourceSettings) -> Pressure:
    wanted = resource.pressure.required and resource.pressure.mode is not PressureMode.OFF
    return Pressure.UNKNOWN if wanted else Pressure.OFF


def _same_device(old: ResourceSettings | None, new: ResourceSettings) -> bool:
    return old is not None and (old.type, old.device, old.unified) == (new.type, new.device, new.unified)
