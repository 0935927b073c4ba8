"""What the process apart says is what the contract says, to the letter; and it alone loads the models."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from standins.agents import manifest
from vacancy_agent.store.state import Tokens
from vacancy_agent.wiring import contract_apart
from vacancy_agent.wiring.config import RefusedError
from vacancy_agent.wiring.contract import alone
from vacancy_agent.wiring.contract_apart import JudgeError, judge

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from vacancy_agent.wiring.config import Configuration

pytestmark = pytest.mark.component
HEAVY = {"pydantic", "yaml", "kubernetes", "prometheus_client", "dbus_fast", "kopf", "zoneinfo", "tarfile"}
HEAVY |= {"importlib.metadata", "aiohttp.web", "vacancy_operator"}


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens("b", "r", "a", tmp_path, created=False)


def outcome(reader: Callable[[bytes, Tokens], Configuration], content: bytes, tokens: Tokens) -> object:
    try:
        return reader(content, tokens)
    except RefusedError as error:
        return error.errors


def contents() -> dict[str, bytes]:
    whole = manifest("http://127.0.0.1:9", models={"items": [{"name": "m", "minFreeMiB": 7}]})
    wrong = manifest("ftp://x", port=0, resource="none", spec_owner={"idel": "3m"})
    return {
        "right": repr(whole).encode(),  # YAML takes Python's quotes
        "wrong": repr(wrong).encode(),
        "no YAML": b"a: [",
        "nothing": b"",
        "too long": b" " * (300 << 10),
        "no text": b"\xff\xfe\x00",
    }


@pytest.mark.parametrize("name", contents())
def test_the_process_apart_says_the_same(name: str, tokens: Tokens):
    content = contents()[name]
    said = outcome(judge, content, tokens)
    assert said == outcome(alone, content, tokens)
    assert isinstance(said, list) == (name != "right")


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("/nonexistent/python", "No such file or directory"),
        ("/bin/false", "its process ended with 1"),
        ("/bin/true", "Ran out of input"),
    ],
)
def test_a_machine_that_cannot_judge_is_no_wrong_manifest(
    program: str, why: str, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "executable", program)
    with pytest.raises(JudgeError, match=f"could not be judged: .*{why}"):
        judge(b"", tokens)


def test_a_child_that_fails_is_quoted(tokens: Tokens, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(contract_apart, "__name__", "vacancy_agent.wiring.nothing")
    with pytest.raises(JudgeError, match=r"No module named 'vacancy_agent\.wiring\.nothing'"):
        judge(b"", tokens)


def test_an_agent_alone_does_not_load_what_it_needs_once():
    code = "import sys, vacancy_agent.cli, vacancy_agent.wiring.main; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert HEAVY & set(loaded.split()) == set()
