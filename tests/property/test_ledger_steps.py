"""The ledger beside a list that is gone through from the start for every question: 10,000 random steps.

The hypothesis machine in `core/test_ledger.py` finds short histories and shrinks them; this one finds what
takes a long one: numbers, counts and samples that drift.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from standins.hosts import host, memory, upstream, vacant
from standins.long_runs import ten_thousand_steps
from vacancy_agent.core.facts import Instant, ProcessIdentity, Ready
from vacancy_agent.core.job import Hold, Job, JobId, Moved, ReleasedBy
from vacancy_agent.core.ledger import Ledger
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from vacancy_agent.core.job import Outcome

NEEDS = {"a": ("gpu", "ram"), "b": ("gpu",), "c": ("ram", "cpu0"), "d": ("card",)}
SLOTS = {"a": 2, "b": 3, "c": 2, "d": 1}
MAY = {
    "forwarding": {"track", "hold", "proof"},
    "tracking": {"hold", "proof", "replaced"},
    "held": {"proof", "administrator", "replaced", "assumed"},
}
PROCESSES = (None, ProcessIdentity(7, 1.0), ProcessIdentity(7, 2.0))
MODELS = (None, "m", "n")


@dataclass
class Row:
    """One job that was not released."""

    number: int
    upstream: str
    phase: str
    model: str | None
    process: ProcessIdentity | None


class List:
    """What the ledger is said to do, as a list of jobs and a list of what ended."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.ends: list[tuple[float, str, str, str | None]] = []
        """When which resource became idle, by whose last job, on which model."""
        self.samples: list[tuple[float, str]] = []
        self.closed: set[str] = set()

    def refuses(self, name: str, model: str | None, *, resident: bool) -> str | tuple[str, ...] | None:
        if name in self.closed:
            return "reclaim"
        beside = [row for row in self.rows if set(NEEDS[row.upstream]) & set(NEEDS[name])]
        if any(row.upstream != name for row in beside) or len(beside) >= SLOTS[name]:
            return "in_use"
        return tuple(r for r in NEEDS[name] if self.unread(r, name, model, resident=resident)) or None

    def unread(self, resource: str, name: str, model: str | None, *, resident: bool) -> bool:
        ends = [end for end in self.ends if end[1] == resource]
        if not ends:
            return False
        at, _, last, ran = ends[-1]
        read = any(when > at for when, of in self.samples if of == resource)
        return not read and not (resident and (last, ran) == (name, model))

    def leave(self, row: Row, now: float) -> tuple[str, ...]:
        self.rows.remove(row)
        idle = [r for r in NEEDS[row.upstream] if not any(r in NEEDS[one.upstream] for one in self.rows)]
        self.ends = [end for end in self.ends if end[1] not in idle]
        self.ends += [(now, r, row.upstream, row.model) for r in idle]
        return tuple(idle)


class Steps:
    """Does the same to both, and compares what comes of it."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)  # noqa: S311 - no secret
        self.now = 10.0
        self.list = List()
        self.done: Counter[str] = Counter()
        ups = [upstream(name, needs, slots=SLOTS[name]) for name, needs in NEEDS.items()]
        self.board = vacant(host(ups), 0.0)
        self.ledger = Ledger(self.board.settings, self.board)

    def step(self) -> None:
        kinds = (
            "reserve",
            "reserve",
            "move",
            "move",
            "move",
            "sample",
            "close",
            "restart",
        )
        weights = (8, 8, 8, 8, 8, 6, 2, 0.5)
        kind = self.draw.choices(kinds, weights)[0]
        self.now += self.draw.choice((0.0, 0.5, 3.0))
        self.done[kind] += 1
        getattr(self, kind)()
        self.compare()

    def at(self) -> Instant:
        return Instant(self.now)

    def reserve(self) -> None:
        name, model = self.draw.choice("abcd"), self.draw.choice(MODELS)
        resident, process = self.draw.random() < 0.3, self.draw.choice(PROCESSES)
        expected = self.list.refuses(name, model, resident=resident)
        got = self.ledger.reserve(name, self.at(), "ci", model, process, resident)
        if isinstance(got, Job):
            assert expected is None
            assert got.id not in [row.number for row in self.list.rows]
            self.list.rows.append(Row(got.id, name, "forwarding", model, process))
            self.done["admitted"] += 1
        elif isinstance(expected, tuple):
            assert got.needs_sample == expected
        else:
            assert (got.detail["cause"], got.needs_sample) == (expected, ())

    def move(self) -> None:
        verb = self.draw.choice(
            ["track", "track", "hold", "hold", "proof", "proved", "administrator", "replaced", "assumed"]
        )
        known = self.list.rows
        row = self.draw.choice(known) if known and self.draw.random() < 0.95 else None
        job = JobId(10**9) if row is None else JobId(row.number)
        if verb == "proved":
            may = row is not None and "proof" in MAY[row.phase]
            idle = self.ledger.proved(job, self.at())
            assert idle == (self.list.leave(row, self.now) if row is not None and may else ())
            return
        outcome = self._does(verb, job)
        assert isinstance(outcome, Moved) == (row is not None and verb in MAY[row.phase])
        if isinstance(outcome, Moved) and row is not None:
            self.done[f"{row.phase} {verb}"] += 1
            if verb in {"track", "hold"}:
                row.phase = {"track": "tracking", "hold": "held"}[verb]
                assert outcome.idle == ()
            else:
                assert outcome.idle == self.list.leave(row, self.now)

    def _does(self, verb: str, job: JobId) -> Outcome:
        if verb == "track":
            return self.ledger.track(job, self.at())
        if verb == "hold":
            return self.ledger.hold(job, "it left", self.at())
        return self.ledger.release(job, ReleasedBy(verb), self.at())

    def sample(self) -> None:
        began = self.now - self.draw.choice((0.0, 2.0))
        for name in self.board.settings.resources:
            if self.draw.random() < 0.7:
                self.board.set_capacity(name, Ready(memory(), Instant(began)))
                self.list.samples = [one for one in self.list.samples if one[1] != name or one[0] > began]
                self.list.samples.append((began, name))

    def close(self) -> None:
        name = self.draw.choice("abcd")
        if name in self.list.closed:
            self.list.closed.remove(name)
            self.ledger.reopen(name)
        else:
            self.list.closed.add(name)
            self.ledger.close(name, Reason.OWNER_ACTIVE)

    def restart(self) -> None:
        """The journal has every job; what ran is held, and what was read before counts for nothing."""
        holds = [
            Hold(JobId(row.number), row.upstream, self.at(), "it was killed", "ci", row.model, row.process)
            for row in self.list.rows
        ]
        self.board = vacant(self.board.settings, 0.0)
        self.ledger = Ledger(self.board.settings, self.board)
        assert len(self.ledger.restore(holds, self.at())) == len(holds)
        for row in self.list.rows:
            row.phase = "held"
        self.list.ends, self.list.samples, self.list.closed = [], [], set()

    def compare(self) -> None:
        rows = self.list.rows
        jobs = list(self.ledger.jobs())
        assert [(job.id, job.upstream, job.phase.value) for job in jobs] == [
            (row.number, row.upstream, row.phase) for row in rows
        ]
        counted = Counter((row.upstream, row.phase) for row in rows)
        assert counted == {
            (name, phase.value): number
            for name, phases in self.ledger.counts().items()
            for phase, number in phases.items()
            if number
        }
        busy = {resource for row in rows for resource in NEEDS[row.upstream]}
        assert self.board._work == busy


@pytest.mark.parametrize("seed", range(2))
def test_ten_thousand_steps(seed: int) -> None:
    steps = ten_thousand_steps(Steps, seed)
    moves = [f"{phase} {verb}" for phase, verbs in MAY.items() for verb in verbs]
    assert min(steps.done[one] for one in (*moves, "admitted", "restart")) > 10, steps.done
