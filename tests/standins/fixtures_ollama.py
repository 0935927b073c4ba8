"""Fixtures for tests against Ollama: `ollama`, a real one, and `ollama_standin`, one with video memory.

The real server of the session is shared by every test that asks for it; each finds it with nothing loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab import ollama_lab
from ollamas.build import missing_for_build
from standins.ollama_server import OllamaStandin
from standins.require import require

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.nvidia_smi_lab import NvidiaSmiLab


def require_ollama() -> None:
    """Skip (or fail, in the complete run) where the real server cannot run."""
    why, packages = ollama_lab.missing(), missing_for_build()
    first = f"apt-get install {' '.join(packages)}; " if packages else ""
    require(why is None, f"Ollama ({why})", f"{first}hack/ollama build")


@pytest.fixture(scope="session")
def shared_ollama() -> Iterator[ollama_lab.OllamaLab]:
    """The server itself; tests ask for `ollama`."""
    require_ollama()
    with ollama_lab.ollama_server() as lab:
        yield lab


@pytest.fixture
def ollama(shared_ollama: ollama_lab.OllamaLab) -> ollama_lab.OllamaLab:
    """A real Ollama with the models of `ollama_lab`, and nothing loaded."""
    shared_ollama.unload_all()
    return shared_ollama


@pytest.fixture
def ollama_standin(nvidia_smi: NvidiaSmiLab) -> Iterator[OllamaStandin]:
    """A stand-in whose models take the memory that the stand-in nvidia-smi shows."""
    with OllamaStandin(nvidia_smi) as server:
        yield server
