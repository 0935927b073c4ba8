from __future__ import annotations

import errno
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vacancy_agent.clock import SystemClock
from vacancy_agent.collect.child import (
    Child,
    ChildDeadlineError,
    ChildError,
    ChildFloodError,
    ChildMissingError,
    ChildUnkillableError,
    Finished,
)
from vacancy_agent.core.facts import Instant

if TYPE_CHECKING:
    from lab.nvidia_smi_lab import NvidiaSmiLab

pytestmark = pytest.mark.component
CLOCK = SystemClock()


def run(*argv: str, deadline: float = 20.0, limit: int = 10_000) -> Finished:
    return Child(argv, limit).finish(CLOCK, Instant(CLOCK.now() + deadline), threading.Event())


def test_output_and_exit_status() -> None:
    assert run("sh", "-c", "echo out; echo err >&2; exit 3") == Finished(3, b"out\n", b"err\n")


def test_death_by_a_signal_is_told_with_the_partial_output() -> None:
    assert run("sh", "-c", "printf part; kill -SEGV $$") == Finished(-signal.SIGSEGV, b"part", b"")


def test_it_speaks_english() -> None:
    assert run("sh", "-c", "echo $LC_ALL").stdout == b"C\n"


def test_a_program_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ChildMissingError, match="No such file"):
        run("no-such-program-anywhere")
    (tmp_path / "notes").write_text("text")
    with pytest.raises(ChildMissingError, match="Permission denied"):
        run(str(tmp_path / "notes"))


@pytest.mark.parametrize("mode", ["hang", "ignore-term", "orphan-hang"])
def test_hanging_programs_are_killed_at_their_deadline(nvidia_smi: NvidiaSmiLab, mode: str) -> None:
    nvidia_smi.mode(mode)
    began = time.monotonic()
    with pytest.raises(ChildDeadlineError):
        run("nvidia-smi", deadline=0.5)
    assert time.monotonic() - began < 10


def test_a_grandchild_that_holds_the_pipe_delays_nothing_and_dies_too(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    began = time.monotonic()
    done = run("sh", "-c", f"sleep 300 & echo $! > {pid_file}; echo answer")
    assert done.stdout == b"answer\n"
    assert time.monotonic() - began < 10
    grandchild = int(pid_file.read_text())
    for _ in range(500):
        if not _running(grandchild):
            break
        time.sleep(0.01)
    assert not _running(grandchild)


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_grandchild_that_left_the_group_delays_nothing_either() -> None:
    began = time.monotonic()
    done = run("sh", "-c", "setsid sleep 3 & echo answer")
    assert done == Finished(0, b"answer\n", b"")
    assert time.monotonic() - began < 2.5


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_a_flood_is_cut_off(stream: str) -> None:
    began = time.monotonic()
    with pytest.raises(ChildFloodError, match="10000 bytes"):
        run("sh", "-c", f"yes {stream}")
    assert time.monotonic() - began < 10


def test_a_program_that_closes_its_output_and_hangs_still_meets_its_deadline() -> None:
    with pytest.raises(ChildDeadlineError):
        run("sh", "-c", "exec >&- 2>&-; sleep 300", deadline=0.3)


def test_who_waits_can_call_it_off() -> None:
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    with pytest.raises(ChildDeadlineError):
        Child(["sleep", "300"], 100).finish(CLOCK, Instant(CLOCK.now() + 60), stop)


def test_a_program_that_survives_its_kill_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child(["sleep", "300"], 100)
    with monkeypatch.context() as patch:
        patch.setattr("vacancy_agent.collect.child.kill_group", lambda _pid: None)
        with pytest.raises(ChildUnkillableError):
            child.finish(CLOCK, CLOCK.now(), threading.Event())
        assert not child.gone()
    child.kill()
    while not child.gone():
        time.sleep(0.01)
    child.kill()


def test_a_program_whose_output_cannot_be_read_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_free() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    child = Child(["sleep", "300"], 100)
    monkeypatch.setattr("vacancy_agent.collect.child.selectors.DefaultSelector", none_free)
    with pytest.raises(ChildError, match="Too many open files"):
        child.finish(CLOCK, Instant(CLOCK.now() + 60), threading.Event())
    assert child.gone()


def test_nothing_is_left_open(nvidia_smi: NvidiaSmiLab) -> None:
    nvidia_smi.mode("hang")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with pytest.raises(ChildDeadlineError):
            run("nvidia-smi", deadline=0.05)
        run("true")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
