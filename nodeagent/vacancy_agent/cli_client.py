"""The subcommands that ask a running agent: status, who, why, pause, resume, holds, debug, diagnostics."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from vacancy_agent import cli_api, cli_text
from vacancy_agent.store.state import default_state_dir

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from vacancy_agent.cli_text import Document

EXIT_OK, EXIT_RUNTIME, EXIT_INPUT, EXIT_REFUSED = 0, 1, 2, 3
SERVER_FAILED = 500


def add_parsers(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add every client subcommand."""
    _reader(commands, "status", "what the agent does right now", cli_text.status)
    _reader(commands, "who", "who is using this machine, and who did today", cli_text.who)
    _reader(commands, "why", "why it lends or does not, in a sentence each", cli_text.why)
    pause = _command(commands, "pause", "stop lending now, for a time or until `vacancy resume`", _pause)
    end = pause.add_mutually_exclusive_group()
    end.add_argument("--for", dest="duration", metavar="DURATION", help="for example 45m, 2h or 1h30m")
    end.add_argument("--until", metavar="TIME", help="for example 2026-12-24T18:00:00Z")
    _command(commands, "resume", "end a pause made with `vacancy pause`", _resume)
    holds = _command(commands, "holds", "work whose end is not proved, and how to free it", _holds)
    debug = _command(commands, "debug", "log every request for a while, to see what becomes of it", _debug)
    debug.add_argument(
        "--for",
        dest="duration",
        metavar="DURATION",
        default="10m",
        help="default 10m, at most 1h; 0s ends it",
    )
    about = "write what is needed to find a fault into one archive: status, configuration, log, metrics"
    diagnostics = _command(commands, "diagnostics", about, _diagnostics, as_json=False)
    diagnostics.add_argument(
        "--out", metavar="FILE", default="vacancy-diagnostics.tar", help="default %(default)s; - for stdout"
    )
    holds.add_argument("--release", metavar="ID", help="free this hold: you know that the work has ended")


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    about: str,
    run: Callable[[argparse.Namespace], int],
    *,
    as_json: bool = True,
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=about, description=about[0].upper() + about[1:] + "."
    )
    parser.add_argument(
        "--api", metavar="URL", help="the agent's API (default http://127.0.0.1:8470, or $VACANCY_API)"
    )
    parser.add_argument(
        "--token", help="a token with the scope it needs (default $VACANCY_TOKEN, else tokens.json)"
    )
    parser.add_argument(
        "--state-dir",
        metavar="DIR",
        help=f"where the agent keeps tokens.json (default {default_state_dir()})",
    )
    if as_json:
        parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.set_defaults(run=lambda args: _guarded(run, args))
    return parser


def _reader(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    about: str,
    render: Callable[[Document], str],
) -> None:
    def run(args: argparse.Namespace) -> int:
        document = cli_api.call(args, "GET", "/status", scope="read")
        _show(args, document, render)
        return EXIT_OK

    _command(commands, name, about, run)


def _guarded(run: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    try:
        return run(args)
    except cli_api.ApiRefusedError as refused:
        print(f"vacancy: {cli_text.printable(str(refused))}", file=sys.stderr)
        return _code_of(refused.status)
    except cli_api.ApiUnreachableError as unreachable:
        print(f"vacancy: {cli_text.printable(str(unreachable))}", file=sys.stderr)
        return EXIT_RUNTIME


def _code_of(status: int) -> int:
    if status == cli_api.WRONG_INPUT:
        return EXIT_INPUT
    return EXIT_RUNTIME if status >= SERVER_FAILED else EXIT_REFUSED


def _show(args: argparse.Namespace, document: Document, render: Callable[[Document], str]) -> None:
    try:
        text = json.dumps(document, indent=2) if args.json else render(cli_text.printable(document))
    except (KeyError, TypeError) as missing:
        raise cli_api.ApiUnreachableError(
            f"the answer has no {missing}: is it a vacancy agent of this version? (--json shows it)"
        ) from missing
    print(text)


def _pause(args: argparse.Namespace) -> int:
    asked = {"for": args.duration, "until": args.until}
    wanted: dict[str, Any] = {key: value for key, value in asked.items() if value is not None}
    _show(args, cli_api.call(args, "POST", "/admin/pause", scope="admin", body=wanted), cli_text.paused)
    return EXIT_OK


def _resume(args: argparse.Namespace) -> int:
    _show(args, cli_api.call(args, "POST", "/admin/resume", scope="admin", body={}), cli_text.resumed)
    return EXIT_OK


def _holds(args: argparse.Namespace) -> int:
    if args.release is not None:
        path = f"/admin/holds/{cli_api.segment(args.release)}"
        document = cli_api.call(args, "DELETE", path, scope="admin")
    else:
        document = cli_api.call(args, "GET", "/admin/holds", scope="admin")
    _show(args, document, cli_text.holds)
    return EXIT_OK


def _debug(args: argparse.Namespace) -> int:
    body = {"for": args.duration}
    _show(args, cli_api.call(args, "POST", "/admin/debug", scope="admin", body=body), cli_text.debugging)
    return EXIT_OK


def _diagnostics(args: argparse.Namespace) -> int:
    content = cli_api.fetch(args, "/admin/diagnostics", scope="admin")
    if args.out == "-":
        sys.stdout.buffer.write(content)
        return EXIT_OK
    try:
        # For the owner's eyes: the archive has no secret in it, but it says who borrowed what.
        with open(args.out, "wb", opener=_private) as file:
            file.write(content)
    except OSError as error:
        print(f"vacancy: {args.out} cannot be written: {error.strerror or error}", file=sys.stderr)
        return EXIT_RUNTIME
    print(
        f"Written to {args.out}. It holds no secret, but it says who borrowed what: look before you send it."
    )
    return EXIT_OK


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
