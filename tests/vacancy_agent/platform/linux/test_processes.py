from __future__ import annotations

import os
import shutil
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from vacancy_agent.core.facts import Seconds
from vacancy_agent.core.presence import Answers, Questions
from vacancy_agent.platform.linux import processes
from vacancy_agent.platform.linux.processes import ProcessTable

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.component
ME = os.getuid()
NOBODY = 61_234


@contextmanager
def running(program: Path, *, below_a_shell: bool = False) -> Iterator[int]:
    """A process of that name, or a shell with one below it; the pid of the first."""
    if not program.exists():
        shutil.copy(shutil.which("cat") or "", program)
    argv = ["sh", "-c", 'exec 3<&0; "$1" <&3 & wait', "sh", str(program)] if below_a_shell else [str(program)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as process:
        first = psutil.Process(process.pid)
        for _ in range(2000):
            if program.name in [p.name() for p in (first, *first.children(recursive=True))]:
                break
            threading.Event().wait(0.005)
        yield process.pid


@pytest.mark.parametrize("name", ["sway", "Hyprland", "kwin_wayland", "Xorg"])
async def test_a_desktop_below_a_leader_is_found(tmp_path: Path, name: str) -> None:
    table = ProcessTable([])
    with running(tmp_path / name, below_a_shell=True) as leader:
        assert await table.ask(Questions(leaders=frozenset({leader}))) == Answers(frozenset({leader}))


async def test_a_leader_that_became_the_desktop_is_found(tmp_path: Path) -> None:
    with running(tmp_path / "sway") as leader:
        answers = await ProcessTable([]).ask(Questions(leaders=frozenset({leader})))
    assert answers.desktops == {leader}


async def test_a_plain_console_has_none(tmp_path: Path) -> None:
    with running(tmp_path / "vim", below_a_shell=True) as leader:
        answers = await ProcessTable([]).ask(Questions(leaders=frozenset({leader})))
    assert answers == Answers()


async def test_a_leader_that_is_gone_has_none() -> None:
    beyond = int(Path("/proc/sys/kernel/pid_max").read_text()) + 1
    assert await ProcessTable([]).ask(Questions(leaders=frozenset({beyond}))) == Answers()


@pytest.mark.parametrize("listed", ["eldenring.exe", "EldenRing.EXE"])
async def test_a_listed_process_of_the_user_is_found_whatever_its_case(tmp_path: Path, listed: str) -> None:
    with running(tmp_path / "EldenRing.exe"):
        answers = await ProcessTable([listed]).ask(Questions(uids=frozenset({ME})))
    assert answers == Answers(owners=frozenset({ME}))


async def test_a_name_longer_than_the_kernel_keeps_is_found(tmp_path: Path) -> None:
    name = "a-game-with-a-very-long-name"
    with running(tmp_path / name):
        assert (await ProcessTable([name]).ask(Questions(uids=frozenset({ME})))).owners == {ME}


async def test_a_process_that_is_not_listed_is_not() -> None:
    assert await ProcessTable(["no-such-game"]).ask(Questions(uids=frozenset({ME}))) == Answers()


async def test_a_user_of_whom_nothing_can_be_seen_is_no_answer() -> None:
    answers = await ProcessTable(["steam"]).ask(Questions(uids=frozenset({ME, NOBODY})))
    assert answers.failed is not None
    assert "cannot be seen" in answers.failed


async def test_a_table_that_hangs_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def hang(*_: object) -> Answers:
        release.wait(30)
        return Answers()

    monkeypatch.setattr(processes, "answer", hang)
    table = ProcessTable(["steam"], deadline=Seconds(0.05))
    for _ in range(2):
        assert (await table.ask(Questions(uids=frozenset({ME})))).failed is not None
    release.set()


async def test_a_table_that_cannot_be_read_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Answers:
        raise PermissionError

    monkeypatch.setattr(processes, "answer", fail)
    assert (await ProcessTable(["steam"]).ask(Questions(uids=frozenset({ME})))).failed is not None
