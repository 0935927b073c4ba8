from __future__ import annotations

import pytest

from vacancy_agent.core.facts import Instant, ProcessIdentity
from vacancy_agent.upstreams.quiet import Busy, Quiet, TooShort, TreeSample, judge

ROOT, CHILD = ProcessIdentity(10, 1.0), ProcessIdentity(11, 2.0)
REPLACED = ProcessIdentity(10, 99.0)


def tree(at: float, root: float = 0.0, child: float | None = None, *, who=ROOT, gpu: float | None = None):
    cpu = {who: root} | ({} if child is None else {CHILD: child})
    return TreeSample(Instant(at), who, cpu, gpu)


def steps(*cpu: float, start: float = 0.0):
    return [tree(start + 0.75 * number, used) for number, used in enumerate(cpu)]


CASES = {
    "nothing sampled": ([], TooShort),
    "one sample": (steps(5.0), TooShort),
    "idle, window not complete": (steps(5.0, 5.0, 5.0, 5.0), TooShort),
    "idle over three seconds": (steps(5.0, 5.0, 5.0, 5.0, 5.0), Quiet),
    "a little work": (steps(5.0, 5.03, 5.06, 5.09, 5.12), Quiet),
    "five percent": (steps(5.0, 5.04, 5.08, 5.12, 5.15), Busy),
    "a core and a half, seen at once": (steps(5.0, 6.1), Busy),
    "it worked before the window": (steps(1.0, 9.0, 9.0, 9.0, 9.0, 9.0), Quiet),
    "it worked at the window's beginning": (steps(1.0, 9.0, 9.0, 9.0, 9.0), Busy),
    "a child works": ([tree(0, 0, 1), tree(0.75, 0, 1.7)], Busy),
    "a child came and works": ([tree(0, 0), tree(0.75, 0, 0.4)], Busy),
    "an idle child came": ([tree(t * 0.75, 0, None if t == 0 else 0.01) for t in range(5)], Quiet),
    "a child ended, and its parent has its account": ([tree(0, 0, 3.0), tree(0.75, 3.7)], Busy),
    "the process was replaced in between": (
        [tree(0), tree(0.75), tree(1.5, who=REPLACED), tree(2.25, who=REPLACED), tree(3.0, who=REPLACED)],
        TooShort,
    ),
    "the machine slept in between": ([tree(0), tree(0.75), tree(900.0), tree(900.75)], TooShort),
    "the GPU works": ([tree(0, gpu=0.0), tree(0.75, gpu=3.0)], Busy),
    "the GPU worked before the window": (
        [tree(0, gpu=90.0), *[tree(1 + t * 0.75, gpu=0.0) for t in range(5)]],
        Quiet,
    ),
    "the GPU is idle": ([tree(t * 0.75, gpu=0.0) for t in range(5)], Quiet),
}


@pytest.mark.parametrize("case", CASES)
def test_quiet(case: str):
    samples, expected = CASES[case]
    assert isinstance(judge(samples), expected)


def test_quiet_says_from_when_on_and_busy_how_much():
    assert judge(steps(9.0, 9.0, 9.0, 9.0, 9.0, 9.0, start=100.0)) == Quiet(Instant(100.75))
    verdict = judge(steps(0.0, 1.5))
    assert isinstance(verdict, Busy)
    assert verdict.why == "its processes use 2.00 cores"
