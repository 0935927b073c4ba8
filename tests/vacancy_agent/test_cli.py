"""The one command: help that a stranger can follow, one program under two names, and quiet ends."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from importlib import metadata
from importlib.metadata import EntryPoint, version
from pathlib import Path

import pytest

from vacancy_agent import cli

SCRIPT = Path(sys.executable).with_name("vacancy")
MODULE = (sys.executable, "-m", "vacancy_agent.cli")
COMMANDS = (
    "agent",
    "status",
    "who",
    "why",
    "pause",
    "resume",
    "holds",
    "debug",
    "diagnostics",
    "config",
    "measure",
)


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=60
    )


def ends(argv: list[str]) -> int:
    with pytest.raises(SystemExit) as end:
        cli.main(argv)
    assert isinstance(end.value.code, int)
    return end.value.code


def test_help_lists_every_command_with_a_line(capsys: pytest.CaptureFixture[str]):
    assert ends(["--help"]) == 0
    text = capsys.readouterr().out
    lines = dict(re.findall(r"^    (\w+)(?:\n)? +(\S.*)$", text, re.MULTILINE))
    assert set(COMMANDS) <= lines.keys()
    assert all(len(lines[name].split()) >= 4 for name in COMMANDS)
    assert "vacancy agent --manifest FILE" in text
    assert "Exit codes: 0 ok, 1 failed while running, 2 wrong input, 3 refused by the agent." in text


@pytest.mark.parametrize("command", [*COMMANDS, "config check"])
def test_every_command_explains_itself_and_its_options(command: str, capsys: pytest.CaptureFixture[str]):
    assert ends([*command.split(), "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: vacancy {command}")
    assert len(text.splitlines()) >= 5


def test_every_option_of_every_command_says_something():
    silent = []
    parsers = [("vacancy", cli.build_parser())]
    for name, parser in parsers:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers += [(f"{name} {command}", one) for command, one in action.choices.items()]
            elif not action.help:
                silent.append(f"{name}: {action.dest}")
    assert len(parsers) > len(COMMANDS)
    assert silent == []


@pytest.mark.parametrize(
    "argv", [[], ["nonsense"], ["status", "--nonsense"], ["agent"], ["config"], ["pause", "--for"]]
)
def test_what_cannot_be_understood_is_wrong_input(argv: list[str], capsys: pytest.CaptureFixture[str]):
    assert ends(argv) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "usage: vacancy" in shown.err


def test_the_version_is_the_distributions(capsys: pytest.CaptureFixture[str]):
    assert ends(["--version"]) == 0
    assert capsys.readouterr().out == f"vacancy {version('vacancy')}\n"


def test_ctrl_c_is_no_traceback(monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vacancy_agent.cli_api.call", interrupted)
    assert cli.main(["status"]) == 130


def test_a_command_of_another_package_that_is_broken_breaks_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    broken = EntryPoint("elsewhere", "vacancy_elsewhere.cli:add_parser", cli.COMMANDS)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [broken] if group == cli.COMMANDS else [])
    assert ends(["status", "--help"]) == 0
    capsys.readouterr()
    assert cli.main(["elsewhere"]) == 1
    expected = "vacancy elsewhere cannot run in this installation: No module named 'vacancy_elsewhere'\n"
    assert capsys.readouterr().err == expected


@pytest.mark.component
@pytest.mark.parametrize(
    "argv", [("--help",), ("--version",), ("status", "--api", "http://127.0.0.1:9"), ("x",)]
)
def test_module_and_script_are_the_same(argv: tuple[str, ...]):
    script, module = run(str(SCRIPT), *argv, COLUMNS="100"), run(*MODULE, *argv, COLUMNS="100")
    assert (script.returncode, script.stdout, script.stderr) == (
        module.returncode,
        module.stdout,
        module.stderr,
    )
    assert script.returncode == {"--help": 0, "--version": 0, "status": 1, "x": 2}[argv[0]]


@pytest.mark.component
def test_a_reader_who_leaves_early_is_no_error():
    """As in `vacancy ... | head -0`: nothing is complained about, not even at the interpreter's exit."""
    reader, writer = os.pipe()
    os.close(reader)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [*MODULE, "config", "check", "--json", os.devnull]
    with subprocess.Popen(command, env=buffered, stdout=writer, stderr=subprocess.PIPE, text=True) as process:
        os.close(writer)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (1, "")


@pytest.mark.component
def test_asking_an_agent_does_not_load_one():
    code = (
        "import sys; from vacancy_agent import cli; code = cli.main(['status', '--api', 'http://127.0.0.1:9']);"
        "print(sorted({'aiohttp', 'uvloop', 'pydantic_core', 'dbus_fast', 'kopf'} & set(sys.modules)), code)"
    )
    assert run(sys.executable, "-c", code).stdout == "[] 1\n"
