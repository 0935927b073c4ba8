"""`hack/bench proxy`: the whole agent as a borrower meets it, against nginx and others.

POST of 1 KB with a bearer token, `slots` 512 and limits to match, gate, ledger, journal and metrics on. A run
with a single refusal measures refusals, so it is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import uvloop

from benches import nginx, wrk
from benches.agent import start_agent
from benches.parts import Lab, free_port, python_module
from benches.peers import PEERS
from benches.profile import run_profile
from benches.proxy_streams import StreamBench
from benches.throughput import AGENT, DIRECT, NGINX, report_throughput
from benches.wrk import Target

if TYPE_CHECKING:
    import argparse

    from benches.report import Report

GROUPS = ("throughput", "streams", "delay", "cancel", "gone", "body")


def run_proxy(report: Report, options: argparse.Namespace) -> None:
    """Measure the groups asked for, each with parts of its own."""
    lacking = [name for name, found in (("nginx", nginx.program()), ("wrk", wrk.program())) if not found]
    if options.profile:
        run_profile(report, quick=options.quick)
        return
    groups = options.only or GROUPS
    if "throughput" in groups:
        if lacking:
            for key in ("rps_c1_nginx", "rps_c32_nginx", "rps_c256_nginx", "added_p50_c1_nginx"):
                report.miss(key, f"{' and '.join(lacking)} not installed")
        else:
            throughput(report, quick=options.quick)
    streaming = [group for group in groups if group != "throughput"]
    if streaming:
        streams(report, streaming, quick=options.quick)


def throughput(report: Report, *, quick: bool) -> None:
    """Requests a second and added latency, all targets in one interleaved run."""
    with Lab() as lab:
        upstream = nginx.start_upstream(lab)
        agent = start_agent(lab, upstream)
        peer_port, peer_pid = nginx.start_proxy(lab, upstream)
        targets = [
            Target(AGENT, agent.port, agent.borrow, pid=agent.pid, after=agent.free_holds),
            Target(NGINX, peer_port, pid=peer_pid),
            Target(DIRECT, upstream),
        ]
        for peer in PEERS:
            if peer.find():
                targets.append(peer.start(lab, upstream))
            else:
                report.miss(f"rps_c32_{peer.name}", peer.how_to_get())
        rounds, seconds = (3, 1) if quick else (7, 3)
        report_throughput(report, targets, lab.directory, rounds=rounds, seconds=seconds)


def streams(report: Report, groups: list[str], *, quick: bool) -> None:
    """Everything that needs paced streams."""
    with Lab() as lab:
        upstream = free_port()
        lab.start("paced", python_module("benches.paced", str(upstream)), port=upstream, core=lab.load_core)
        agent = start_agent(lab, upstream)
        bench = StreamBench(report, lab, agent, upstream, quick=quick)
        uvloop.run(bench.run(groups))
