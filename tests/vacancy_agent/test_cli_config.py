from __future__ import annotations

import argparse
import io
import json
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from standins import agents
from standins.manifests import REMOVE, manifest
from vacancy_agent import cli_config

if TYPE_CHECKING:
    from pathlib import Path


def check(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="vacancy")
    cli_config.add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["config", "check", *arguments])
    code = args.run(args)
    assert isinstance(code, int)
    return code


def write(path: Path, **changes: Any) -> str:
    path.write_text(yaml.safe_dump(manifest(**changes)), encoding="utf-8")
    return str(path)


def test_a_valid_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.yaml", spec__upstreams_1__dialect="llamacpp", spec__resources_2=REMOVE)
    assert check(file) == 0
    assert capsys.readouterr().out == f"{file}: ok (host gaming-box: 2 upstreams, 2 resources)\n"


def test_warnings_do_not_fail_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(
        tmp_path / "a.yaml",
        spec__upstreams_1__dialect="comfyui",
        spec__access__listen="127.0.0.1",
        spec__resources_2=REMOVE,
    )
    assert check(file) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{file}: ok")
    assert [line.split(": ")[1:3] for line in lines[1:]] == [
        ["warning", "spec.access.listen"],
        ["warning", "spec.upstreams[1]"],
    ]


def test_one_model_in_two_spellings_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = [{"name": "small"}, {"name": "other"}, {"name": "Library/Small:latest"}]
    file = write(
        tmp_path / "a.yaml",
        spec__upstreams_1__dialect="ollama",
        spec__upstreams_1__models={"items": items},
        spec__resources_2=REMOVE,
    )
    assert check(file) == 2
    told = "'Library/Small:latest' and 'small' are both small:latest to ollama: keep one"
    assert capsys.readouterr().out == f"{file}: spec.upstreams[1].models.items[2].name: {told}\n"


def test_every_error_has_a_line_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write(tmp_path / "good.yaml")
    bad = write(tmp_path / "bad.yaml", spec__upstreams_0__port="80", spec__upstreams_1__resource="gpuu")
    assert check(good, bad) == 2
    lines = capsys.readouterr().out.splitlines()
    wrong = [line for line in lines if line.startswith(bad)]
    assert len(wrong) == 2
    assert any(line.startswith(f"{bad}: spec.upstreams[0].port: must be a whole number") for line in wrong)
    assert any(line.startswith(f"{good}: ok") for line in lines)


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(str(tmp_path / "none.yaml")) == 2
    assert "none.yaml: cannot be read: No such file" in capsys.readouterr().out


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    content = io.BytesIO(yaml.safe_dump(manifest()).encode())
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=content))
    assert check("-") == 0
    assert capsys.readouterr().out.startswith("<stdin>: ok")


def test_verdicts_as_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write(tmp_path / "good.yaml", spec__upstreams_1__dialect="openai", spec__resources_2=REMOVE)
    bad = tmp_path / "bad.yaml"
    bad.write_text("a: [\n", encoding="utf-8")
    assert check("--json", good, str(bad)) == 2
    first, second = json.loads(capsys.readouterr().out)
    assert first == {"file": good, "ok": True, "host": "gaming-box", "errors": [], "warnings": []}
    assert (second["ok"], second["host"], second["errors"][0]["line"]) == (False, None, 2)


def test_without_a_file_the_usage_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        check()
    assert caught.value.code == 2
    assert "FILE" in capsys.readouterr().err


@pytest.mark.component
@pytest.mark.parametrize("bind", ["0.0.0.0", "127.0.0.1"])
def test_a_server_that_can_be_used_past_the_gate_is_a_warning(
    bind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with socket.create_server((bind, 0)) as server:
        port = server.getsockname()[1]
        path = tmp_path / "host.json"
        path.write_text(json.dumps(agents.manifest(f"http://127.0.0.1:{port}")))
        assert check(str(path)) == 0
    told = (
        f"{path}: warning: spec.upstreams[0].target: what listens on port {port} of this machine takes "
        "connections from the network, so borrowers could go around the gate: bind it to 127.0.0.1"
    )
    assert (told in capsys.readouterr().out) == (bind == "0.0.0.0")
