"""Pressure in driven time: presence is fresh, and a sample is taken every two seconds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from standins.hosts import host, resource, seen, upstream
from vacancy_agent.core.board import Board
from vacancy_agent.core.facts import Evidence, Instant, Percent, Seconds
from vacancy_agent.core.learned import BINS, Calibration
from vacancy_agent.core.owner_load import Attributed, GpuUser, Total
from vacancy_agent.core.pressures import Around, Outcome, Pressures
from vacancy_agent.core.settings import PressureMode, PressureSettings

if TYPE_CHECKING:
    from vacancy_agent.core.board import Pressure
    from vacancy_agent.core.owner_load import LoadSample
    from vacancy_agent.core.settings import HostSettings

GPU = "GPU-0a11c0de-0000-4000-8000-000000000000"
DEFAULT = PressureSettings(mode=PressureMode.LEARNED)
LEARNED = PressureSettings(mode=PressureMode.LEARNED, required=True)
FIXED = PressureSettings(mode=PressureMode.FIXED, required=True, threshold=Percent(20.0))
OFF = PressureSettings()
READY = Calibration(GPU, (600.0, *[0.0] * (BINS - 1)), Seconds(600.0), Percent(10.0))
OURS = frozenset({"llm"})


def settings(pressure: PressureSettings = DEFAULT, **more: Any) -> HostSettings:
    return host([upstream()], [resource(pressure=pressure, **more)])


class Pressed:
    """`working` is who has borrowed work; `fresh` False: presence is not read any more."""

    def __init__(self, pressure: PressureSettings = DEFAULT, kept: Calibration | None = None) -> None:
        self.board = Board(settings(pressure))
        self.pressures = Pressures(self.board.settings, self.board)
        if kept is not None:
            self.pressures.kept["gpu"] = kept
        self.now = 1000.0
        self.awake = 500.0
        self.working: frozenset[str] = frozenset()
        self.local = OURS
        self.fresh = True
        self.edges: list[Outcome] = []

    def see(self, sample: LoadSample | None = None, *, times: int = 1) -> Outcome:
        for _ in range(times):
            self.now += 2.0
            self.awake += 2.0
            if self.fresh:
                self.board.set_presence(seen(Evidence.ABSENT, self.now), Instant(self.now))
            around = Around(Instant(self.now), Seconds(self.awake), self.working, self.local)
            outcome = self.pressures.observe("gpu", self.at_now(sample), around)
            if outcome.edge is not None:
                self.edges.append(outcome)
        return outcome

    def at_now(self, sample: LoadSample | None) -> LoadSample:
        now = Instant(self.now)
        if sample is None:
            return Attributed(GPU, (), now)
        if isinstance(sample, Attributed):
            total = None if sample.total is None else Total(sample.total.load, now)
            return replace(sample, at=now, total=total)
        return replace(sample, at=now) if isinstance(sample, Total) else sample

    @property
    def state(self) -> Pressure:
        return self.board.pressure["gpu"]

    @property
    def shown(self) -> str:
        return self.board.pressure_view["gpu"].shown

    @property
    def why(self) -> str:
        return self.board.pressure_view["gpu"].why


def load(
    percent: float, *, ours: float | None = None, device: str = GPU, total: float | None = None
) -> Attributed:
    users = [GpuUser({"sm": percent})]
    if ours is not None:
        users.append(GpuUser({"sm": ours}, OURS))
    return Attributed(
        device, tuple(users), Instant(0.0), None if total is None else Total(Percent(total), Instant(0.0))
    )
