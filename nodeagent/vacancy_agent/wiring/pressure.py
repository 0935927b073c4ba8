"""The pressure of a running agent: what its judgement needs of the rest, what it tells, and what it keeps.

Invariant: what was learned is never older on the disk than `SAVE_S`, and a start takes over only what was
learned on the very same device. Saving is not in the way of judging: a full disk costs a line in the log.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from vacancy_agent.core.job import Phase
from vacancy_agent.core.pressures import Around, Pressures, shown_as
from vacancy_agent.store.errors import StoreError
from vacancy_agent.upstreams.process import local_addresses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vacancy_agent.clock import Clock
    from vacancy_agent.core.board import Board, Pressure
    from vacancy_agent.core.facts import Instant
    from vacancy_agent.core.ledger import Ledger
    from vacancy_agent.core.owner_load import LoadSample
    from vacancy_agent.core.pressure import PressureEdge
    from vacancy_agent.core.settings import HostSettings
    from vacancy_agent.proxy.host import Journalist
    from vacancy_agent.store.sqlite import LocalStore

SAVE_S = 600.0


class PressureWatch:
    """One for a host."""

    def __init__(
        self, board: Board, ledger: Ledger, store: LocalStore, clock: Clock, tell: Journalist
    ) -> None:
        self._board = board
        self._ledger = ledger
        self._store = store
        self._clock = clock
        self._tell = tell
        self._pressures = Pressures(board.settings, board)
        self._pressures.kept.update(store.calibrations)
        self._local = _local(board.settings)
        self._told: dict[str, Pressure] = {}

    def reconfigure(self, settings: HostSettings) -> None:
        """Take over new settings; call it after the board's."""
        self._pressures.reconfigure(settings)
        self._local = _local(settings)

    def observe(self, resource: str, sample: LoadSample, now: Instant) -> PressureEdge | None:
        """Judge a sample; the board is written when this returns."""
        jobs = tuple(self._ledger.jobs())
        working = frozenset(job.upstream for job in jobs)
        only_held = working - {job.upstream for job in jobs if job.phase is not Phase.HELD}
        around = Around(now, self._clock.awake(), working, self._local, only_held)
        outcome = self._pressures.observe(resource, sample, around)
        if outcome.discarded is not None:
            self._tell("calibration discarded", resource=resource, why=outcome.discarded)
        for upstream in outcome.unseen:
            self._tell("warning: unseen GPU work", upstream=upstream, why=_UNSEEN)
        self._tell_change(resource)
        return outcome.edge

    def tick(self, now: Instant) -> Iterator[tuple[str, PressureEdge]]:
        """Resources whose load has not been answered for too long."""
        for resource, edge in self._pressures.tick(now):
            self._tell_change(resource)
            yield resource, edge

    def outdate(self) -> None:
        """The machine slept."""
        self._pressures.outdate()

    async def keep(self) -> None:
        """Save what was learned every ten minutes, until cancelled."""
        while True:
            await asyncio.sleep(SAVE_S)
            await self.save()

    async def save(self) -> None:
        """Save what was learned so far."""
        try:
            await self._store.set_calibrations(self._pressures.calibrations())
        except StoreError as error:
            self._tell("calibration not saved", why=error)

    def _tell_change(self, resource: str) -> None:
        """Once for each change of the state; a load that only builds up is none."""
        shown = shown_as(self._board.pressure[resource])
        if self._told.get(resource) is shown:
            return
        self._told[resource] = shown
        view = self._board.pressure_view.get(resource)
        why = {"why": view.why} if view is not None and view.why else {}
        self._tell("pressure", resource=resource, state=shown.value, **why)


_UNSEEN = (
    "its work runs, but no process of its server uses a GPU: where it relays to another process, the load of "
    "that one counts as the owner's"
)


def _local(settings: HostSettings) -> frozenset[str]:
    """Upstreams whose target names this machine."""
    upstreams = settings.upstreams.values()
    return frozenset(one.name for one in upstreams if local_addresses(one.target.host) is not None)
