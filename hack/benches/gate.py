"""`hack/bench gate`: one admission in process, as the path of a request asks for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benches.report import Report, median
from vacancy_agent.core.board import Board
from vacancy_agent.core.facts import Evidence, Instant, MemoryCapacity, MiB, Presence, Ready, WallTime
from vacancy_agent.core.gate import Ask, decide
from vacancy_agent.core.gate_kept import Gate
from vacancy_agent.core.settings import (
    Dialect,
    HostSettings,
    LendingSettings,
    OwnerSettings,
    ResourceSettings,
    ResourceType,
    SamplingSettings,
    Target,
    UpstreamSettings,
)
from vacancy_agent.core.verdict import Admit

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

NOW, WALL = Instant(1000.0), WallTime(1_700_000_000.0)
CALLS = 100_000


def lending_board() -> Board:
    """A host with one resource that would admit."""
    upstream = UpstreamSettings(
        name="bench",
        dialect=Dialect.OPENAI,
        target=Target("http", "127.0.0.1", 8000),
        port=9000,
        requires=("ram",),
        slots=512,
    )
    settings = HostSettings(
        lending=LendingSettings(),
        owner=OwnerSettings(headless=True),
        sampling=SamplingSettings(),
        resources={"ram": ResourceSettings("ram", ResourceType.MEMORY)},
        upstreams={"bench": upstream},
    )
    board = Board(settings)
    board.set_presence(Ready(Presence(Evidence.ABSENT, "headless"), NOW), NOW)
    board.set_capacity("ram", Ready(MemoryCapacity(MiB(16_000), MiB(24_000)), NOW))
    return board


def seconds_each(call: Callable[[], object], *, rounds: int) -> float:
    """Median over rounds of the time of one call."""
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(CALLS):
            call()
        taken.append((time.perf_counter() - started) / CALLS)
    return median(taken)


def run_gate(report: Report, options: argparse.Namespace) -> None:
    """The gate as the proxy holds it (it remembers admissions), and the plain decision beside it."""
    board, ask = lending_board(), Ask("bench", "model")
    gate = Gate(board)
    assert isinstance(gate.decide(ask, NOW, WALL), Admit)
    rounds = 3 if options.quick else 9
    plain = seconds_each(lambda: decide(board, ask, NOW, WALL), rounds=rounds)
    report.note(f"plain decision, nothing remembered: {plain * 1e6:.2f} us")
    report.add("decide_s", seconds_each(lambda: gate.decide(ask, NOW, WALL), rounds=rounds))
