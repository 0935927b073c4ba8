"""What the agent adds to the judgement: its ledger, its log, its store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from standins.clock import FakeClock
from standins.hosts import host, resource, seen, upstream
from vacancy_agent.core.board import Board, Pressure
from vacancy_agent.core.facts import Evidence, Instant, Percent, Seconds
from vacancy_agent.core.job import Job, ReleasedBy
from vacancy_agent.core.learned import BINS, Calibration
from vacancy_agent.core.ledger import Ledger
from vacancy_agent.core.owner_load import Attributed, Failed, GpuUser, NotPossible
from vacancy_agent.core.settings import PressureMode, PressureSettings, Target
from vacancy_agent.store.errors import StoreError
from vacancy_agent.wiring.pressure import SAVE_S, PressureWatch

if TYPE_CHECKING:
    from vacancy_agent.core.owner_load import LoadSample
    from vacancy_agent.core.pressure import PressureEdge

GPU = "GPU-0a11c0de-0000-4000-8000-000000000000"
READY = Calibration(GPU, (600.0, *[0.0] * (BINS - 1)), Seconds(600.0), Percent(10.0))


class Kept:
    """A store in memory."""

    def __init__(self) -> None:
        self.calibrations: dict[str, Calibration] = {"gpu": READY}
        self.writes: list[Any] = []
        self.full = False

    async def set_calibrations(self, learned: Any) -> None:
        if self.full:
            raise StoreError("the disk is full")
        self.writes.append(dict(learned))


class Rig:
    def __init__(self, target: str = "127.0.0.1") -> None:
        self.clock = FakeClock()
        ups = [upstream(target=Target("http", target, 8080))]
        self.settings = host(
            ups, [resource(pressure=PressureSettings(mode=PressureMode.LEARNED, required=True))]
        )
        self.board = Board(self.settings)
        self.ledger = Ledger(self.settings, self.board)
        self.kept = Kept()
        self.told: list[tuple[str, dict[str, object]]] = []
        self.watch = PressureWatch(
            self.board,
            self.ledger,
            self.kept,  # type: ignore[arg-type]
            self.clock,
            lambda event, **facts: self.told.append((event, facts)),
        )

    def see(self, sample: LoadSample) -> PressureEdge | None:
        self.clock.advance(2.0)
        now = self.clock.now()
        self.board.set_presence(seen(Evidence.ABSENT, now), now)
        return self.watch.observe("gpu", sample, now)

    def load(self, percent: float, *upstreams: str) -> Attributed:
        user = GpuUser({"sm": percent}, frozenset(upstreams))
        return Attributed(GPU, (user,), Instant(self.clock.now() + 2.0))

    def events(self, name: str) -> list[dict[str, object]]:
        return [facts for event, facts in self.told if event == name]


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_each_change_of_the_state_is_told_once(rig: Rig) -> None:
    for _ in range(3):
        rig.see(rig.load(1))
    edges = [rig.see(rig.load(90)) for _ in range(5)]
    assert [edge is not None for edge in edges] == [False, False, True, False, False]
    rig.see(Failed("it hung"))
    rig.see(Failed("it hung"))
    assert [facts["state"] for facts in rig.events("pressure")] == ["clear", "engaged", "unknown"]
    assert rig.events("pressure")[-1]["why"] == "it hung; unknown for 2 s"


def test_a_probe_that_hangs_is_told_by_the_tick(rig: Rig) -> None:
    rig.see(rig.load(1))
    rig.clock.advance(20.0)
    ((name, edge),) = rig.watch.tick(rig.clock.now())
    assert (name, edge.unknown_for) == ("gpu", 20.0)
    assert rig.events("pressure")[-1]["state"] == "unknown"


@pytest.mark.parametrize(
    ("target", "warned"), [("127.0.0.1", 1), ("localhost", 1), ("192.0.2.7", 0), ("gpu.lan", 0)]
)
def test_work_that_cannot_be_seen_is_warned_of_once(target: str, warned: int) -> None:
    rig = Rig(target)
    job = rig.ledger.reserve("llm", rig.clock.now(), "ci")
    assert isinstance(job, Job)
    for _ in range(6):
        rig.see(rig.load(3))
    assert len(rig.events("warning: unseen GPU work")) == warned
    assert rig.board.unseen_gpu_work == ({"llm"} if warned else set())
    rig.see(rig.load(3, "llm"))
    assert rig.board.unseen_gpu_work == set()
    rig.ledger.release(job.id, ReleasedBy.ADMINISTRATOR, rig.clock.now())


def test_a_calibration_of_another_card_is_one_line(rig: Rig) -> None:
    for _ in range(3):
        rig.see(Attributed("GPU-other", (), Instant(rig.clock.now() + 2.0)))
    assert rig.events("calibration discarded") == [{"resource": "gpu", "why": "another device"}]


def test_what_is_written_and_not_possible_is_told_with_the_reason(rig: Rig) -> None:
    rig.see(NotPossible("Not Supported"))
    assert rig.events("pressure") == [{"resource": "gpu", "state": "unknown", "why": "Not Supported"}]


def test_a_sleep_makes_it_unknown(rig: Rig) -> None:
    rig.see(rig.load(1))
    assert rig.board.pressure["gpu"] is Pressure.CLEAR
    rig.watch.outdate()
    assert rig.board.pressure["gpu"] is Pressure.UNKNOWN


@pytest.mark.looptime
async def test_is_saved_every_ten_minutes_and_a_full_disk_is_a_line_in_the_log(rig: Rig) -> None:
    rig.see(rig.load(1))
    rig.see(rig.load(1))
    keeping = asyncio.get_running_loop().create_task(rig.watch.keep())
    await asyncio.sleep(SAVE_S - 1)
    assert rig.kept.writes == []
    await asyncio.sleep(2)
    assert rig.kept.writes[-1]["gpu"].observed == 602.0
    rig.kept.full = True
    await asyncio.sleep(SAVE_S)
    assert [str(facts["why"]) for facts in rig.events("calibration not saved")] == ["the disk is full"]
    rig.kept.full = False
    await asyncio.sleep(SAVE_S)
    assert len(rig.kept.writes) == 2
    keeping.cancel()


def test_work_that_is_held_may_have_ended_and_is_not_looked_for_on_the_gpu(rig: Rig):
    job = rig.ledger.reserve("llm", rig.clock.now(), "ci")
    assert isinstance(job, Job)
    rig.ledger.hold(job.id, "the borrower left", rig.clock.now())
    for _ in range(5):
        rig.see(rig.load(1.0))
    assert rig.board.unseen_gpu_work == set()
    assert rig.events("warning: unseen GPU work") == []
