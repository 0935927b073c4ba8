from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from vacancy_agent.cli import build_parser, main

if TYPE_CHECKING:
    from pathlib import Path

KUBECONFIG = """\
{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}],
clusters: [{name: x, cluster: {server: "http://127.0.0.1:9"}}], users: [{name: x, user: {token: t}}]}
"""


def test_it_is_a_subcommand_of_vacancy() -> None:
    args = build_parser().parse_args(["join", "box", "--shell", "powershell"])
    assert (args.host, args.shell) == ("box", "powershell")


@pytest.mark.parametrize("missing", ["vacancy_operator.access", "vacancy_operator.metrics"])
def test_without_what_the_operator_needs_it_says_so(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["join", "box"]) == 1
    assert f"needs the package {missing}: install vacancy[operator]" in capsys.readouterr().err


def test_without_credentials_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["join", "box", "--kubeconfig", str(tmp_path / "none")]) == 2
    assert "no API server" in capsys.readouterr().err


def test_an_api_server_that_does_not_answer_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    assert main(["join", "box", "--kubeconfig", str(path)]) == 1
    assert "GET /api/v1/namespaces/default/secrets/lh-box-join" in capsys.readouterr().err
