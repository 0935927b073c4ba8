from __future__ import annotations

import argparse
import subprocess
import sys
from typing import TYPE_CHECKING

from vacancy_agent.cli import build_parser
from vacancy_operator import cli_operator

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_it_is_a_subcommand_of_vacancy() -> None:
    args = build_parser().parse_args(["operator", "--namespace", "lending", "--list-every", "60"])
    found = cli_operator._settings(args, args.namespace)
    assert (found.namespace, found.list_every, found.healthy_for) == ("lending", 60.0, 84.0)
    assert found.lease_renew == 5.0
    assert found.identity == args.name


def test_without_credentials_it_says_so(tmp_path: Path) -> None:
    code = subprocess.run(
        [sys.executable, "-m", "vacancy_agent.cli", "operator", "--kubeconfig", str(tmp_path / "none")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert code.returncode == 2
    assert "no API server" in code.stderr


def test_without_its_packages_it_says_which(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    for name in [name for name in sys.modules if name.startswith("vacancy_operator.process")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kopf", None)
    monkeypatch.delitem(sys.modules, "vacancy_operator.engine", raising=False)
    assert cli_operator.run(argparse.Namespace()) == 1
    assert "install vacancy[operator]" in capsys.readouterr().err


def test_the_help_of_vacancy_loads_no_operator() -> None:
    script = (
        "import sys; from vacancy_agent.cli import build_parser; build_parser();"
        "sys.exit(any(name in sys.modules for name in ('kopf', 'kubernetes', 'vacancy_operator.process')))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
