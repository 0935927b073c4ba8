from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.cli import build_parser, main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


KUBECONFIG = """\
{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}],
clusters: [{name: x, cluster: {server: "http://127.0.0.1:9"}}], users: [{name: x, user: {token: t}}]}
"""


def test_it_is_a_subcommand_of_vacancy() -> None:
    args = build_parser().parse_args(["join", "box", "--shell", "powershell"])
    assert (args.host, args.shell) == ("box", "powershell")


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
