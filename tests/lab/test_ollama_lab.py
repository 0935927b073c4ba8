"""The real Ollama of the lab: its models, a load for another context, and an end with all its runners."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lab.ollama_lab import ollama_server
from standins.fixtures_ollama import require_ollama

if TYPE_CHECKING:
    from lab.ollama_lab import OllamaLab

pytestmark = pytest.mark.ollama
ASK = {"prompt": "hi", "stream": False}


def contexts(server: OllamaLab) -> dict[str, int]:
    return {name: row["context_length"] for name, row in server.loaded().items()}


def test_its_models_and_their_contexts(ollama: OllamaLab) -> None:
    assert {row["name"] for row in ollama.ask("GET", "/api/tags")["models"]} == {
        "tiny:latest",
        "small:latest",
        "wide:latest",
    }
    for num_ctx in (2048, 1024):
        options = {"num_ctx": num_ctx, "num_predict": 2}
        ollama.ask("POST", "/api/generate", {**ASK, "model": "tiny", "options": options})
        assert contexts(ollama) == {"tiny:latest": num_ctx}
    ollama.ask("POST", "/api/generate", {**ASK, "model": "wide", "options": {"num_predict": 2}})
    assert contexts(ollama)["wide:latest"] == 8192


def test_a_server_that_is_killed_leaves_no_runner() -> None:
    require_ollama()
    with ollama_server() as server:
        server.ask("POST", "/api/generate", {**ASK, "model": "tiny", "options": {"num_predict": 2}})
        group = server.pid
        assert len(members(group)) > 1
        server.kill()
        end = time.monotonic() + 10
        while members(group):
            assert time.monotonic() < end
            time.sleep(0.01)


def members(group: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getpgid(int(folder.name)) == group and "Z" not in state(folder):
                found.append(int(folder.name))
    return found


def state(folder: Path) -> str:
    return (folder / "stat").read_text().rpartition(")")[2].split()[0]
