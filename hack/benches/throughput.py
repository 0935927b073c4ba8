"""Requests a second and added latency: every target in every round, one after the other, then medians.

Interleaving is what makes a ratio worth anything on a shared machine: a slow minute hits all targets alike.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from benches import wrk
from benches.report import Report, median

if TYPE_CHECKING:
    from pathlib import Path

    from benches.wrk import Load, Target

AGENT, DIRECT, NGINX = "agent", "direct", "nginx"
CONNECTIONS = (1, 32, 256)
WARM_UP_S = 1


def measure(
    targets: list[Target], directory: Path, *, rounds: int, seconds: int
) -> dict[tuple[str, int], list[Load]]:
    """All readings by target and connections, taken in turn."""
    readings: dict[tuple[str, int], list[Load]] = defaultdict(list)
    for target in targets:
        wrk.run(target, connections=CONNECTIONS[1], seconds=WARM_UP_S, directory=directory)
    for _ in range(rounds):
        for connections in CONNECTIONS:
            for target in (target for target in targets if connections in target.connections):
                load = wrk.run(target, connections=connections, seconds=seconds, directory=directory)
                readings[target.name, connections].append(load)
                if target.after is not None:
                    target.after()
    return readings


def report_throughput(
    report: Report, targets: list[Target], directory: Path, *, rounds: int, seconds: int
) -> None:
    """Measure and add the ratios; peers that are not among the targets are left to the caller."""
    readings = measure(targets, directory, rounds=rounds, seconds=seconds)
    rate = {key: median([load.per_second for load in loads]) for key, loads in readings.items()}
    p50 = {key: median([load.p50_s for load in loads]) for key, loads in readings.items()}
    for target in targets:
        rates = ", ".join(f"c{count} {rate[target.name, count]:,.0f}" for count in target.connections)
        latency = f"; p50 at c1 {p50[target.name, 1] * 1e6:.0f} us" if 1 in target.connections else ""
        report.note(f"{target.name:<12} requests/s {rates}{latency}")
    present = {target.name for target in targets}
    if NGINX in present:
        busy = {name: median([load.cpu_s for load in readings[name, 32]]) * 1e6 for name in (AGENT, NGINX)}
        report.note(
            f"processor time a request at c32: agent {busy[AGENT]:.1f} us, nginx {busy[NGINX]:.1f} us"
        )
        for count in CONNECTIONS:
            report.add(f"rps_c{count}_nginx", rate[AGENT, count] / rate[NGINX, count])
        added = {name: p50[name, 1] - p50[DIRECT, 1] for name in (AGENT, NGINX)}
        report.note(f"added p50 at c1: agent {added[AGENT] * 1e6:.0f} us, nginx {added[NGINX] * 1e6:.0f} us")
        report.add("added_p50_c1_nginx", added[AGENT] / added[NGINX])
    for peer in ("litellm", "vllm_router"):
        if peer in present:
            report.add(f"rps_c32_{peer}", rate[AGENT, 32] / rate[peer, 32])
