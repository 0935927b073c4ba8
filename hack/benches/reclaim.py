"""`hack/bench reclaim`: the owner comes back in a real logind, and a borrower's running stream is cut.

The clock starts before logind is asked to change the session, so logind's own work and the signal are in the
figure; it stops when the borrower's client sees its connection closed. Only the waiting between runs is
shortened (`releaseAfter`), never the path that is measured.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from benches.agent import start_agent
from benches.parts import Lab, free_port, python_module
from benches.report import median, percentile
from benches.streams import close_all, open_streams
from benches.wrk import Target
from lab import logind_lab

if TYPE_CHECKING:
    import argparse

    from benches.agent import Agent
    from benches.report import Report

RUNS, QUICK_RUNS = 50, 10
CUT_DEADLINE_S = 30.0
OWNER = {"presence": "auto", "releaseAfter": "0s"}


def run_reclaim(report: Report, options: argparse.Namespace) -> None:
    """Measure where the lab can run."""
    lacking = logind_lab.missing()
    if lacking:
        for key in ("cut_p50_s", "cut_p95_s", "runs"):
            report.miss(key, f"a real logind needs {lacking}: {logind_lab.INSTALL_HINT}")
        return
    with Lab() as lab:
        taken = asyncio.run(measure(lab, QUICK_RUNS if options.quick else RUNS))
    report.note(f"ms: {', '.join(f'{value * 1e3:.1f}' for value in sorted(taken))}")
    report.add("cut_p50_s", median(taken))
    report.add("cut_p95_s", percentile(taken, 0.95))
    report.add("runs", len(taken))


async def measure(lab: Lab, runs: int) -> list[float]:
    """Seconds from the owner's return to the cut, for each run."""
    upstream = free_port()
    lab.start("paced", python_module("benches.paced", str(upstream)), port=upstream, core=lab.load_core)
    async with logind_lab.LogindLab() as logind:
        desk = await logind.create(type="wayland", seat="seat0")
        await logind.hint(desk, locked=True)
        env = {"DBUS_SYSTEM_BUS_ADDRESS": logind.address}
        agent = await asyncio.to_thread(start_agent, lab, upstream, owner=OWNER, env=env, pinned=False)
        return [await one_return(logind, desk, agent) for _ in range(runs)]


async def one_return(logind: logind_lab.LogindLab, desk: str, agent: Agent) -> float:
    """The owner is away and a stream runs; the owner unlocks the session; the stream ends."""
    await asyncio.to_thread(agent.wait_lendable)
    streams = await open_streams(Target("agent", agent.port, agent.borrow), 1)
    await asyncio.sleep(0.1)
    started = time.monotonic()
    await logind.hint(desk, locked=False)
    async with asyncio.timeout(CUT_DEADLINE_S):
        cut = await streams[0].closed
    await close_all(streams)
    await logind.hint(desk, locked=True)
    return cut - started
