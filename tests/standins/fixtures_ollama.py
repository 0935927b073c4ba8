"""Fixtures for tests against Ollama: `ollama_standin`, one with video memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.ollama_server import OllamaStandin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.nvidia_smi_lab import NvidiaSmiLab


@pytest.fixture
def ollama_standin(nvidia_smi: NvidiaSmiLab) -> Iterator[OllamaStandin]:
    """A stand-in whose models take the memory that the stand-in nvidia-smi shows."""
    with OllamaStandin(nvidia_smi) as server:
        yield server
