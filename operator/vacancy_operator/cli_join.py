"""`vacancy join HOST`: print the one command that starts the agent on an external machine."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from vacancy_operator.access import Access
    from vacancy_operator.metrics import Metrics

EXIT_OK, EXIT_RUNTIME, EXIT_INPUT = 0, 1, 2

ABOUT = """\
Prints the one command that makes an external machine join and starts its agent. It is read from the join
Secret of the LendingHost, for which you need the right to read that Secret. The command carries the host's
token: whoever has it can act as that host.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `join` to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "join", help="print the command that makes an external machine join", description=ABOUT
    )
    add = parser.add_argument
    add("host", metavar="HOST", help="name of the LendingHost")
    add("--shell", choices=("sh", "powershell"), default="sh", help="for which shell; default sh")
    add("--kubeconfig", type=Path, metavar="FILE", help="credentials; default: KUBECONFIG, ~/.kube/config")
    add("--namespace", metavar="NAME", help="of the LendingHost; default: that of the credentials")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print it; returns the exit code: 0 printed, 1 the API server refused, 2 there is no such host."""
    try:
        from vacancy_operator.access import Access, AccessError
        from vacancy_operator.api import ApiError
        from vacancy_operator.metrics import Metrics
    except ModuleNotFoundError as missing:
        print(f"vacancy join needs the package {missing.name}: install vacancy[operator]", file=sys.stderr)
        return EXIT_RUNTIME
    from vacancy_operator.join import JoinError, posix_command, powershell_command

    try:
        access = Access.find(args.kubeconfig)
        files = asyncio.run(_files(access, Metrics(), args.namespace or access.namespace(), args.host))
    except (AccessError, JoinError) as error:
        print(f"vacancy join: {error}", file=sys.stderr)
        return EXIT_INPUT
    except ApiError as error:
        print(f"vacancy join: {error}", file=sys.stderr)
        return EXIT_RUNTIME
    print(powershell_command(files) if args.shell == "powershell" else posix_command(files))
    return EXIT_OK


async def _files(access: Access, metrics: Metrics, namespace: str, host: str) -> dict[str, str]:
    from vacancy_operator.api import Api
    from vacancy_operator.core.kinds import Names
    from vacancy_operator.join import files_of

    api = Api(access, namespace, metrics)
    try:
        return files_of(await api.get(Names.of(host).join), host)
    finally:
        await api.close()
