"""`vacancy operator`: serve the LendingHosts of one namespace until told to stop."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vacancy_operator.settings import Settings

if TYPE_CHECKING:
    import argparse

EXIT_OK, EXIT_RUNTIME, EXIT_INPUT = 0, 1, 2

ABOUT = """\
Makes what the agents of a namespace's LendingHosts need (configuration, tokens, identity) and says in their
status how they are. Several replicas may run: one is active, the others stand by. SIGTERM ends it.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `operator` to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "operator", help="serve the LendingHosts of a namespace", description=ABOUT
    )
    add = parser.add_argument
    add(
        "--kubeconfig", type=Path, metavar="FILE", help="credentials; default: KUBECONFIG, else the pod's own"
    )
    add("--namespace", metavar="NAME", help="whose LendingHosts; default: that of the credentials")
    add("--listen", default="0.0.0.0", metavar="IP", help="address of health and metrics; default 0.0.0.0")
    add("--port", type=int, default=8080, help="port of health and metrics; default 8080")
    add("--name", default=_own_name(), help="name of this replica; default: the host's name and the process")
    add(
        "--policy", default="vacancy-agent-token", metavar="NAME", help="the admission policy and its binding"
    )
    add("--public-server", metavar="URL", help="API server as external machines reach it; default: our own")
    add("--public-ca", type=Path, metavar="FILE", help="its authority, PEM; default: the one we trust")
    add("--policy-every", type=float, default=15.0, metavar="SECONDS", help="between looks at it; default 15")
    add("--list-every", type=float, default=300.0, metavar="SECONDS", help="between full lists; default 300")
    add("--lease-duration", type=int, default=15, metavar="SECONDS", help="of the active replica; default 15")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run until a signal; returns the exit code: 0 ended as asked, 1 failed, 2 wrong input."""
    try:
        from vacancy_operator import log
        from vacancy_operator.access import Access, AccessError
        from vacancy_operator.process import OperatorError, serve
    except ModuleNotFoundError as missing:
        print(
            f"vacancy operator needs the package {missing.name}: install vacancy[operator]", file=sys.stderr
        )
        return EXIT_RUNTIME
    log.set_up()
    try:
        access = Access.find(args.kubeconfig)
        settings = _settings(args, args.namespace or access.namespace())
        asyncio.run(serve(settings, access))
    except AccessError as error:
        print(f"vacancy operator: {error}", file=sys.stderr)
        return EXIT_INPUT
    except OperatorError as error:
        print(f"vacancy operator: {error}", file=sys.stderr)
        return EXIT_RUNTIME
    return EXIT_OK


def _settings(args: argparse.Namespace, namespace: str) -> Settings:
    return Settings(
        namespace=namespace,
        identity=args.name,
        lease_duration=args.lease_duration,
        lease_renew=args.lease_duration / 3,
        listen=args.listen,
        port=args.port,
        policy_name=args.policy,
        policy_every=args.policy_every,
        list_every=args.list_every,
        healthy_for=args.list_every * 1.4,
        public_server=args.public_server,
        public_ca=args.public_ca,
    )


def _own_name() -> str:
    return f"{socket.gethostname()}-{os.getpid()}"
