"""`vacancy`: the one command. Each subcommand is a module that adds its parser and runs it.

Heavy parts are imported when a subcommand runs: `vacancy --help` and `vacancy status` must not load an agent.
Subcommands of other packages, such as the operator, are entry points: the agent knows of none of them, and
looks for none when one of its own is called. One that cannot be imported fails when it is called, with its
reason; an owner's `vacancy pause` works beside it.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from vacancy_agent import cli_agent, cli_client, cli_config, cli_measure
from vacancy_api.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

DESCRIPTION = """\
Lends this machine while its owner is away.

  vacancy config check FILE     is this manifest right?
  vacancy agent --manifest FILE lend this machine as the manifest says
  vacancy status                what the agent on this machine does, and why
  vacancy pause --for 2h        stop lending now; vacancy resume takes it back
"""

COMMANDS = "vacancy.commands"
"""Group of entry points; each is a function that adds the parser of a subcommand."""

EXIT_CODES = "Exit codes: 0 ok, 1 failed while running, 2 wrong input, 3 refused by the agent."


def build_parser(wanted: str | None = None) -> argparse.ArgumentParser:
    """The parser of the whole command line; of ours alone, where `wanted` is one of our subcommands."""
    parser = argparse.ArgumentParser(
        prog="vacancy",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"vacancy {VERSION}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    cli_agent.add_parser(commands)
    cli_client.add_parsers(commands)
    cli_config.add_parser(commands)
    cli_measure.add_parser(commands)
    if wanted not in commands.choices:
        _add_others(commands)
    return parser


def _add_others(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from importlib.metadata import entry_points

    for found in sorted(entry_points(group=COMMANDS)):
        try:
            add = found.load()
        except ImportError as missing:
            _add_unavailable(commands, found.name, str(missing))
        else:
            add(commands)


def _add_unavailable(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, why: str
) -> None:
    def run(_: argparse.Namespace) -> int:
        print(f"vacancy {name} cannot run in this installation: {why}", file=sys.stderr)
        return 1

    commands.add_parser(name, help=f"not usable in this installation: {why}").set_defaults(run=run)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        The exit code of the process.
    """
    given = sys.argv[1:] if argv is None else argv
    args = build_parser(given[0] if given else None).parse_args(argv)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output left. Python writes what is left of it at exit, and must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    return code


if __name__ == "__main__":
    sys.exit(main())
