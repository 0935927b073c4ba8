"""Fixtures for tests against a real llama-server: `from standins.fixtures_llama import llama, slow_llama`.

A server of the session is shared by every test that asks for it, so a test leaves it idle, as it found it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab import llama_lab
from standins.require import require

if TYPE_CHECKING:
    from collections.abc import Iterator


def require_llama() -> None:
    """Skip (or fail, in the complete run) where the real server cannot run."""
    why = llama_lab.missing()
    require(why is None, f"llama-server ({why})", "pip install xllamacpp gguf numpy")


@pytest.fixture(scope="session")
def llama() -> Iterator[llama_lab.LlamaLab]:
    """A quick server with two slots: a token takes about a millisecond."""
    require_llama()
    with llama_lab.llama_server(llama_lab.LabOptions(slots=2, ctx=8192)) as lab:
        yield lab


@pytest.fixture(scope="session")
def slow_llama() -> Iterator[llama_lab.LlamaLab]:
    """A server with one slot that takes seconds over a prompt of some thousand characters."""
    require_llama()
    with llama_lab.llama_server(llama_lab.LabOptions(model="slow", ctx=16384)) as lab:
        yield lab
