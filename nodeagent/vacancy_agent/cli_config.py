"""`vacancy config check FILE...`: judges manifests without an agent or a cluster.

For people, one line per error that says where and what to change; with `--json`, the same as data. A manifest
that passes is one that an agent starts with and the API server accepts.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from vacancy_api.lending_host import LendingHost
    from vacancy_api.problems import FieldError

OK = 0
WRONG_INPUT = 2

Subparsers = Any
"""What `ArgumentParser.add_subparsers` returns; argparse keeps its class to itself."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said about one file."""

    file: str
    host: LendingHost | None
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[FieldError, ...] = ()


def add_parser(subparsers: Subparsers) -> None:
    """Adds `config check` to the command line; `args.run` is then `run`."""
    config = subparsers.add_parser("config", help="work with LendingHost manifests")
    commands = config.add_subparsers(dest="config_command", required=True, metavar="COMMAND")
    check: argparse.ArgumentParser = commands.add_parser(
        "check",
        help="judge manifests: every error with its path, and what to change",
        description="Judges LendingHost manifests. Exit code 0: all are valid; 2: at least one is not.",
    )
    check.add_argument("files", nargs="+", metavar="FILE", help="manifest to judge; - is standard input")
    check.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    check.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Judges `args.files`; returns the exit code: 0 all valid, 2 wrong input."""
    verdicts = [judge(file) for file in args.files]
    if args.json:
        print(json.dumps([_as_data(verdict) for verdict in verdicts], indent=2))
    else:
        for verdict in verdicts:
            print("\n".join(_lines(verdict)))
    return WRONG_INPUT if any(verdict.errors for verdict in verdicts) else OK


def judge(file: str) -> Verdict:
    """The verdict on one file; `-` reads standard input."""
    # Imported here: the models of the contract take half a second, which `vacancy pause` has not.
    from vacancy_agent.translate import models_named_twice
    from vacancy_api.advice import advice
    from vacancy_api.manifest import ManifestInvalid, load_manifest
    from vacancy_api.problems import FieldError
    from vacancy_api.yaml_document import MAX_BYTES

    try:
        host = load_manifest(sys.stdin.buffer.read(MAX_BYTES + 1) if file == "-" else Path(file))
    except ManifestInvalid as invalid:
        return Verdict(_name(file), None, errors=invalid.errors)
    errors = tuple(FieldError(path, problem) for path, problem in models_named_twice(host.spec))
    if errors:
        return Verdict(_name(file), None, errors=errors)
    return Verdict(_name(file), host, warnings=(*advice(host), *_on_network(host)))


def _on_network(host: LendingHost) -> Iterator[FieldError]:
    """Servers on this machine that can be used past the gate; of servers elsewhere nothing is known here."""
    from vacancy_agent.core.settings import Target
    from vacancy_api.problems import FieldError
    from vacancy_api.spec_upstreams import parse_target

    try:
        from vacancy_agent.upstreams.listener_state import ListenerState, listener_state
    except ModuleNotFoundError:  # an installation for manifests alone
        return
    for index, upstream in enumerate(host.spec.upstreams):
        url = parse_target(upstream.target)
        if url is None:
            continue
        state = listener_state(Target(url.scheme, url.host, url.port))
        if state is ListenerState.LISTENS_ON_NETWORK:
            message = (
                f"what listens on port {url.port} of this machine takes connections from the network, so "
                "borrowers could go around the gate: bind it to 127.0.0.1"
            )
            yield FieldError(f"spec.upstreams[{index}].target", message)


def _name(file: str) -> str:
    return "<stdin>" if file == "-" else file


def _lines(verdict: Verdict) -> list[str]:
    if verdict.host is None:
        return [f"{verdict.file}: {error}" for error in verdict.errors]
    spec = verdict.host.spec
    counts = f"{_count(len(spec.upstreams), 'upstream')}, {_count(len(spec.resources), 'resource')}"
    first = f"{verdict.file}: ok (host {verdict.host.metadata.name}: {counts})"
    return [first, *(f"{verdict.file}: warning: {warning}" for warning in verdict.warnings)]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _as_data(verdict: Verdict) -> dict[str, Any]:
    return {
        "file": verdict.file,
        "ok": not verdict.errors,
        "host": verdict.host.metadata.name if verdict.host else None,
        "errors": [asdict(error) for error in verdict.errors],
        "warnings": [asdict(warning) for warning in verdict.warnings],
    }
