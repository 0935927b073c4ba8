"""`hack/bench agent`: what an agent costs that has nothing to do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benches import nginx
from benches.agent import start_agent
from benches.memory import cpu_seconds, resident, shared_out, tree
from benches.parts import Lab, free_port, python_module
from benches.report import MIB

if TYPE_CHECKING:
    import argparse

    from benches.report import Report

SETTLE_S = 5.0
WINDOW_S = 600.0
QUICK_WINDOW_S = 15.0


def run_agent(report: Report, options: argparse.Namespace) -> None:
    """Start an agent with the default cadences, let it settle, watch it over a bounded window.

    It is the second start: as where pip has installed it, everything is compiled by then.
    """
    window = QUICK_WINDOW_S if options.quick else WINDOW_S
    with Lab() as lab:
        if nginx.program():
            upstream = nginx.start_upstream(lab)
        else:
            upstream = free_port()
            lab.start(
                "paced", python_module("benches.paced", str(upstream)), port=upstream, core=lab.load_core
            )
        compiled = {"PYTHONPYCACHEPREFIX": str(lab.directory / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
        start_agent(lab, upstream, pinned=False, env=compiled).part.stop()
        agent = start_agent(lab, upstream, pinned=False, env=compiled)
        time.sleep(SETTLE_S)
        before, started = cpu_seconds(agent.pid), time.monotonic()
        time.sleep(window)
        spent = (cpu_seconds(agent.pid) - before) / (time.monotonic() - started)
        processes, pss = len(tree(agent.pid)), shared_out(agent.pid) / MIB
        report.note(f"{processes} process(es), {pss:.1f} MiB PSS, over {window:.0f} s")
        report.add("rss_alone_bytes", sum(resident(member) for member in tree(agent.pid)))
        report.add("cpu_idle", spent)
