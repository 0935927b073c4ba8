"""`vacancy agent`: lend this machine until told to stop."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


EXIT_OK, EXIT_RUNTIME, EXIT_INPUT = 0, 1, 2

ABOUT = """\
Lends this machine as a LendingHost manifest says, without a cluster. Each upstream gets a port of its own;
the API (status, metrics, switches) is on the manifest's apiPort. The first start makes three random tokens
and says where. A change of the file, or SIGHUP, applies a new manifest live; a wrong one changes nothing.
SIGTERM ends it.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `agent` to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "agent", help="lend this machine as a manifest says", description=ABOUT
    )
    parser.add_argument(
        "--manifest", type=Path, required=True, metavar="FILE", help="a LendingHost, YAML or JSON"
    )
    parser.add_argument(
        "--state-dir", type=Path, metavar="DIR", help="where tokens, holds and switches are kept"
    )
    parser.add_argument("--quiet", action="store_true", help="log warnings only")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run until a signal; returns the exit code: 0 ended as asked, 1 failed, 2 wrong input."""
    try:
        from vacancy_agent.wiring.main import StartError, main  # noqa: PLC0415 - only here is an agent needed
    except ModuleNotFoundError as missing:
        print(f"vacancy agent needs the package {missing.name}: install vacancy[agent]", file=sys.stderr)
        return EXIT_RUNTIME
    try:
        return main(args.manifest, args.state_dir, quiet=args.quiet)
    except StartError as error:
        for line in error.lines:
            print(f"vacancy agent: {line}", file=sys.stderr)
        return EXIT_INPUT if error.input_is_wrong else EXIT_RUNTIME
