"""`hack/bench NAME`: measure, print with the machine line, write the figures where asked."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from benches.parts import PartError
from benches.report import Report
from runner.needs import BENCH_NEEDS, COMPONENT_NEEDS, install_missing

NAMES = {
    "proxy": ("benches.proxy", "run_proxy", BENCH_NEEDS),
    "reclaim": ("benches.reclaim", "run_reclaim", COMPONENT_NEEDS),
    "gate": ("benches.gate", "run_gate", ()),
    "agent": ("benches.idle", "run_agent", BENCH_NEEDS),
}


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="hack/bench",
        description="Ratios measured in one interleaved run against a peer started beside it.",
    )
    parser.add_argument("name", choices=NAMES, help="what to measure")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds: to see that it works")
    parser.add_argument(
        "--profile", action="store_true", help="proxy: print where the agent's time goes instead"
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="GROUP",
        choices=("throughput", "streams", "delay", "cancel", "gone", "body"),
        help="proxy: throughput, streams, delay, cancel, gone or body (may be repeated)",
    )
    return parser.parse_args(argv)


def main() -> int:
    """Exit code 1 when a part did not work; a goal that is not reached is printed, not punished."""
    options = parse(sys.argv[1:])
    module, function, needs = NAMES[options.name]
    install_missing(needs)
    report = Report(options.name)
    report.start()
    try:
        getattr(import_module(module), function)(report, options)
    except PartError as error:
        print(f"hack/bench: {error}", file=sys.stderr)
        return 1
    report.finish()
    if options.json:
        report.write(options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
