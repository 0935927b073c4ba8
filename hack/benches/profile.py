"""`hack/bench proxy --profile`: where the agent's time goes while 32 connections keep it busy."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from typing import TYPE_CHECKING

from benches import nginx, wrk
from benches.agent import start_agent
from benches.parts import Lab, PartError

if TYPE_CHECKING:
    from pathlib import Path

    from benches.report import Report

LINES = 30
CONNECTIONS = 32
SECONDS, QUICK_SECONDS = 10, 3


def run_profile(report: Report, *, quick: bool) -> None:
    """Load the agent, once without the profiler's timer and once with it, and print the shares."""
    with Lab() as lab:
        output = lab.directory / "profile.json"
        agent = start_agent(lab, nginx.start_upstream(lab), profile_to=output)
        target = wrk.Target("agent", agent.port, agent.borrow)
        seconds = QUICK_SECONDS if quick else SECONDS
        plain = wrk.run(target, connections=CONNECTIONS, seconds=seconds, directory=lab.directory)
        os.kill(agent.pid, signal.SIGUSR1)
        sampled = wrk.run(target, connections=CONNECTIONS, seconds=seconds, directory=lab.directory)
        agent.part.stop()
        if not output.exists():
            raise PartError(f"no profile was written:\n{agent.part.last_words()}")
        report.note(f"requests/s: {plain.per_second:,.0f}; while sampled: {sampled.per_second:,.0f}")
        show(report, output)


def show(report: Report, output: Path) -> None:
    """Shares by package, then by function."""
    content = json.loads(output.read_text())
    samples, own, inclusive = content["samples"], Counter(content["own"]), Counter(content["inclusive"])
    if not samples:
        raise PartError("the profiler took no sample")
    packages: Counter[str] = Counter()
    for name, count in own.items():
        packages[package(name)] += count
    report.note(f"{samples} samples; share of the agent's time by package")
    for name, count in packages.most_common():
        report.note(f"  {count / samples:6.1%}  {name}")
    report.note("by function: own share, share with what it calls")
    for name, count in own.most_common(LINES):
        report.note(f"  {count / samples:6.1%} {inclusive[name] / samples:6.1%}  {name}")


def package(name: str) -> str:
    """The package of ours that a function is in; `vacancy_agent` by its parts."""
    parts = name.partition(":")[0].split(".")
    if not parts[0].startswith("vacancy_"):
        return "elsewhere"
    return ".".join(parts[:2]) if parts[0] == "vacancy_agent" else parts[0]
