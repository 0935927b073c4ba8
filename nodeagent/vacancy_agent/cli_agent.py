"""`vacancy agent`: lend this machine until told to stop."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vacancy_agent.platform.authorities import without_authorities

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_OK, EXIT_RUNTIME, EXIT_INPUT = 0, 1, 2

ABOUT = """\
Lends this machine as a LendingHost says. Each upstream gets a port of its own; the API (status, metrics,
switches) is on apiPort. The first start makes three random tokens and says where. SIGTERM ends it.

With --manifest the LendingHost is a file, and no cluster is needed. A change of the file, or SIGHUP, applies
it live; a wrong one changes nothing.

With --join the LendingHost is in a cluster, and the folder says which: it holds the files of the host's join
Secret (server, ca.crt, token, namespace, name). What ran last is kept, so that the machine lends while the
cluster cannot be reached.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `agent` to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "agent",
        help="lend this machine as a LendingHost says",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--manifest", type=Path, metavar="FILE", help="a LendingHost, YAML or JSON")
    source.add_argument(
        "--join", type=Path, metavar="DIR", help="the files of a join Secret: be a member of that cluster"
    )
    parser.add_argument(
        "--state-dir", type=Path, metavar="DIR", help="where tokens, holds and switches are kept"
    )
    parser.add_argument("--quiet", action="store_true", help="log warnings only")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run until a signal; returns the exit code: 0 ended as asked, 1 failed, 2 wrong input."""
    try:
        with without_authorities():
            import aiohttp  # noqa: F401 - whatever imports it later finds it made like this
        from vacancy_agent.wiring.main import StartError

        main, source = _main(args)
    except ModuleNotFoundError as missing:
        print(f"vacancy agent needs the package {missing.name}: install vacancy[agent]", file=sys.stderr)
        return EXIT_RUNTIME
    try:
        return main(source, args.state_dir, quiet=args.quiet)
    except StartError as error:
        for line in error.lines:
            print(f"vacancy agent: {line}", file=sys.stderr)
        return EXIT_INPUT if error.input_is_wrong else EXIT_RUNTIME


def _main(args: argparse.Namespace) -> tuple[Callable[..., int], Path]:
    if args.join is not None:
        from vacancy_agent.wiring import joined

        return joined.main, args.join
    from vacancy_agent.wiring import main

    return main.main, args.manifest
