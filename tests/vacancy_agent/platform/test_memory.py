from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from vacancy_agent.platform import memory
from vacancy_agent.platform.memory import HostMemory, MemInfo, memory_reader

if TYPE_CHECKING:
    from pathlib import Path

GOOD = "MemTotal:       24731648 kB\nMemFree:  1 kB\nMemAvailable:   23934080 kB\nBuffers: 2 kB\n"


def test_both_figures_are_bytes(tmp_path: Path):
    file = tmp_path / "meminfo"
    file.write_text(GOOD)
    assert MemInfo(file).read() == HostMemory(23934080 << 10, 24731648 << 10)


def test_every_read_is_a_new_one(tmp_path: Path):
    file = tmp_path / "meminfo"
    file.write_text(GOOD)
    info = MemInfo(file)
    file.write_text(GOOD.replace("23934080", "00000005"))
    assert info.read().available == 5 << 10


@pytest.mark.parametrize(
    "text", ["", "MemTotal: 5 kB\n", GOOD.replace("23934080 kB", "?"), GOOD.replace("kB", "")]
)
def test_what_is_not_there_is_an_error_not_a_zero(tmp_path: Path, text: str):
    file = tmp_path / "meminfo"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"subsection|invalid literal"):
        MemInfo(file).read()


def test_it_agrees_with_psutil():
    ours, theirs = memory_reader()(), psutil.virtual_memory()
    assert ours.total == theirs.total
    assert abs(ours.available - theirs.available) < theirs.total // 10


def test_elsewhere_psutil_is_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert memory.memory_reader()().total == psutil.virtual_memory().total
