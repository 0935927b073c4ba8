"""Giving back: which edge reaches which upstream's machine, and when a wait stands down.

Invariant: every accepted job that was running at an edge is cut, ended or spared by a decision that was
published; the first edge fixes the deadline and no later one extends it; only jobs from before the edge are
named. The failure this prevents is work that outlives its deadline because the owner moved the mouse again,
or a stream that is cut although the owner's game has ended. Rejected: a task per edge that sleeps, which
cannot be asked what it will do, nor be tested without time passing.

Usage::

    reclaims = Reclaims(settings)
    effects = reclaims.owner_edge(ledger.active, now)                        # veto rose
    effects = reclaims.lending_edge(ledger.active, now)                      # stopped at the machine
    effects = reclaims.pressure_edge("gpu0", ledger.active, now, veto=board.veto.engaged)
    effects = reclaims.job_ended("ollama", job_id, now)                      # left forwarding and tracking
    effects = reclaims.recheck(board, now, wall)                             # after every sample
    effects = reclaims.tick(now)                                             # at each WakeAt, or any time
    effects = reclaims.unload_result("ollama", attempt, shown=True, now=now)

The runner executes the effects in order. Call the board first, then the reclaims: the gate must refuse
before anything is cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.core import gate
from vacancy_agent.core.board import Pressure
from vacancy_agent.core.effects import ReopenAdmission
from vacancy_agent.core.reclaim_upstream import Unloading, UpstreamReclaim, Work
from vacancy_agent.core.settings import OwnerScope
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from vacancy_agent.core.board import Board
    from vacancy_agent.core.effects import Effect, Effects
    from vacancy_agent.core.facts import Instant, WallTime
    from vacancy_agent.core.job import JobId
    from vacancy_agent.core.settings import HostSettings, UpstreamSettings


class Reclaims:
    """The machines of a host, and which edge reaches which."""

    def __init__(self, settings: HostSettings) -> None:
        self.machines = {name: UpstreamReclaim(up) for name, up in settings.upstreams.items()}

    def owner_edge(self, active: Callable[[str], Iterable[JobId]], now: Instant) -> Effects:
        """The veto rose. Resource-scoped upstreams are never touched by it."""
        return self._edge(
            [m for m in self.machines.values() if m.settings.owner_scope is OwnerScope.HOST],
            Reason.OWNER_ACTIVE,
            active,
            now,
            None,
        )

    def lending_edge(self, active: Callable[[str], Iterable[JobId]], now: Instant) -> Effects:
        """Whoever is at the machine stopped lending: that means every upstream, whatever its scope."""
        return self._edge(self.machines.values(), Reason.LENDING_DISABLED, active, now, None)

    def pressure_edge(
        self, resource: str, active: Callable[[str], Iterable[JobId]], now: Instant, *, veto: bool
    ) -> Effects:
        """The owner's load on a resource rose; during a veto only resource-scoped upstreams are left."""
        reached = [
            m
            for m in self.machines.values()
            if resource in m.settings.requires and not (veto and m.settings.owner_scope is OwnerScope.HOST)
        ]
        return self._edge(reached, Reason.RESOURCE_PRESSURED, active, now, resource)

    def waits_for(self, upstream: str) -> bool:
        """Whether the end of a job of the upstream can mean anything just now."""
        machine = self.machines.get(upstream)
        return machine is not None and machine.work is Work.WAITING

    def job_ended(self, upstream: str, job: JobId, now: Instant) -> Effects:
        """A job of the upstream was released or is held now."""
        machine = self.machines.get(upstream)
        return () if machine is None else machine.job_ended(job, now)

    def recheck(self, board: Board, now: Instant, wall: WallTime) -> Effects:
        """Stand down where admission's own checks would let the upstream work again.

        Lending that is off stands in the way only where it is a trigger: else it refuses new work alone.
        """
        effects: list[Effect] = []
        for machine in self.machines.values():
            if machine.work is not Work.WAITING:
                continue
            gone = trigger_gone(board, machine.settings, machine.refused, now)
            if gone and (not machine.paused or board.lending(wall).allowed):
                effects += machine.stand_down(now)
        return tuple(effects)

    def tick(self, now: Instant) -> Effects:
        """Look at every deadline."""
        return tuple(effect for machine in self.machines.values() for effect in machine.tick(now))

    def unload_result(self, upstream: str, attempt: int, now: Instant, *, shown: bool) -> Effects:
        """The runner's report on an `Unload`."""
        machine = self.machines.get(upstream)
        return () if machine is None else machine.unload_result(attempt, now, shown=shown)

    def claims(self) -> Mapping[str, bool | None]:
        """By upstream whether it showed that it let go when it was asked last; None: it is being asked.

        One that was never asked is missing. A new attempt does not take a `False` back before it succeeds.
        """
        return {
            name: None if machine.unloading is not Unloading.IDLE and machine.claim else machine.claim
            for name, machine in self.machines.items()
            if machine.unloading is not Unloading.IDLE or machine.claim is not None
        }

    def reconfigure(self, settings: HostSettings) -> Effects:
        """Take over new settings; a reclaim under way keeps its deadline, that of a gone upstream ends."""
        gone = [name for name in self.machines if name not in settings.upstreams]
        for name in gone:
            del self.machines[name]
        for name, upstream in settings.upstreams.items():
            self.machines.setdefault(name, UpstreamReclaim(upstream)).settings = upstream
        return tuple(ReopenAdmission(name) for name in gone)

    def _edge(
        self,
        reached: Iterable[UpstreamReclaim],
        trigger: Reason,
        active: Callable[[str], Iterable[JobId]],
        now: Instant,
        resource: str | None,
    ) -> Effects:
        return tuple(
            effect
            for machine in reached
            for effect in machine.edge(trigger, active(machine.settings.name), now, resource=resource)
        )


def trigger_gone(board: Board, upstream: UpstreamSettings, refused: Iterable[str], now: Instant) -> bool:
    """Admission's own checks on what triggers a reclaim: the owner, the pressed resources, the other ones.

    A pressed resource must be known to be clear; the others must merely not refuse.
    """
    if gate.owner(board, upstream, now) is not None:
        return False
    still_needed = [name for name in refused if name in upstream.requires]  # a new configuration may not
    if any(board.pressure[name] is not Pressure.CLEAR for name in still_needed):
        return False
    return all(gate.pressure(board, name) is None for name in upstream.requires)
