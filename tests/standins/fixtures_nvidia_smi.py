"""A stand-in nvidia-smi on PATH for one test."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from lab.nvidia_smi_lab import NvidiaSmiLab

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NvidiaSmiLab:
    lab = NvidiaSmiLab(tmp_path / "nvidia-smi")
    monkeypatch.setenv("PATH", f"{lab.folder}{os.pathsep}{os.environ['PATH']}")
    return lab
