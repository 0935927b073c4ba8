"""`hack/try` as a person runs it: the transcript, and that nothing is left behind, however it ends."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demo.transcript import SHOWN, WIDTH, indented, printable, wrapped
from lab import logind_lab
from standins.fixtures_llama import require_llama
from standins.require import require

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.llama_lab import LlamaLab

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 180.0
GONE_S = 10.0
MARK = "VACANCY_TRY_TEST"


def test_an_answer_of_random_weights_cannot_touch_the_terminal():
    wild = "ok\x1b[31m\x07\r\n\u202eevil\ufffd\u0301é字ש"
    assert printable(wild) == "ok·[31m····evil··é字·"
    assert printable(wild, ascii_only=True) == "ok·[31m····evil·····"


def test_a_long_answer_is_cut_short_and_says_so():
    shown = printable("a" * 1000)
    assert (len(shown), shown[-4:]) == (SHOWN, "a...")


def test_a_long_line_is_wrapped_under_its_own_indent():
    lines = wrapped("  " + "word " * 40)
    assert max(map(len, lines)) <= WIDTH
    assert [len(line) - len(line.lstrip()) for line in lines] == [2, 4, 4]


def test_json_is_shown_indented_and_anything_else_as_it_is():
    assert indented('{"error":{"code":"x"}}').splitlines()[1] == '  "error": {'
    assert indented("<html>\x00") == "<html>·"


class Run:
    """One `hack/try`, whose processes are known by a mark in their environment."""

    def __init__(self, *arguments: str) -> None:
        self.mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [str(ROOT / "hack" / "try"), *arguments],
            env={**os.environ, MARK: self.mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        self.shown = ""

    def until(self, text: str) -> None:
        """Read the transcript up to the line with this text."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.shown += line
            if text in line:
                return
        raise AssertionError(f"{text!r} did not come:\n{self.shown}\n{self.process.communicate()[1]}")

    def interrupt(self) -> None:
        """Ctrl-C: a terminal sends it to the whole group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> tuple[int, str, str]:
        """Exit code, transcript and errors."""
        out, err = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, self.shown + out, err

    def left_running(self) -> list[str]:
        """What still runs of it, after the time that a killed process may take to go."""
        deadline = time.monotonic() + GONE_S
        while (found := self._marked()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found

    def _marked(self) -> list[str]:
        found = []
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdigit() and self.mark.encode() in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        return found


@pytest.fixture
def start() -> Iterator[type[Run]]:
    """Starts runs, and ends what a failed test left."""
    runs: list[Run] = []

    class Kept(Run):
        def __init__(self, *arguments: str) -> None:
            super().__init__(*arguments)
            runs.append(self)

    yield Kept
    for run in runs:
        if run.process.poll() is None:
            run.interrupt()
        run.process.communicate(timeout=LIMIT_S)


def steps(transcript: str) -> list[str]:
    return re.findall(r"^\[ *[0-9.]+ s\] (\d\. .*)$", transcript, re.MULTILINE)


def assert_whole(code: int, transcript: str, errors: str) -> None:
    """A complete run: every step, each essential line, and nothing that a stranger could stumble over."""
    assert code == 0, transcript + errors
    assert [step.split()[0] for step in steps(transcript)] == ["1.", "2.", "3.", "4.", "5."]
    assert re.search(r"200 OK, first token after \d+ ms, complete after \d+ ms:\n +\S", transcript)
    assert re.search(r"^ +[1-9]\d* tokens had come:\n +\S", transcript, re.MULTILINE)
    assert re.search(r"the stream was cut \d+ ms after", transcript)
    assert re.search(r"503 Service Unavailable, after \d+ ms:", transcript)
    assert transcript.endswith("\n           Nothing is left running.\n")
    assert all(character == "\n" or character.isprintable() for character in transcript)
    assert max(map(len, transcript.splitlines())) <= 100
    for wrong in ("Traceback", "Warning", "Task was destroyed", "Unclosed"):
        assert wrong not in errors


@pytest.mark.component
@pytest.mark.llama
def test_the_owner_returns_by_the_switch(start: type[Run]):
    require_llama()
    run = start("--owner", "switch")
    code, transcript, errors = run.end()
    assert_whole(code, transcript, errors)
    assert "X-Vacancy-Reason: lending_disabled" in transcript
    assert '"code": "lending_disabled"' in transcript
    assert "random weights" in transcript
    assert run.left_running() == []


@pytest.mark.component
@pytest.mark.llama
@pytest.mark.logind
def test_the_owner_returns_by_logging_in(start: type[Run]):
    require_llama()
    lacking = logind_lab.missing()
    require(lacking is None, f"systemd-logind in a private namespace ({lacking})", logind_lab.INSTALL_HINT)
    run = start("--owner", "logind")
    code, transcript, errors = run.end()
    assert_whole(code, transcript, errors)
    assert "X-Vacancy-Reason: owner_active" in transcript
    assert "logging in on a real systemd-logind" in transcript
    cut = re.search(r"the stream was cut (\d+) ms", transcript)
    assert cut is not None
    assert int(cut[1]) < 2000
    assert run.left_running() == []


@pytest.mark.component
@pytest.mark.llama
def test_a_server_of_the_users_own_is_found_and_left_running(start: type[Run], llama: LlamaLab):
    run = start("--owner", "switch", "--upstream", llama.url + "/")
    code, transcript, errors = run.end()
    assert_whole(code, transcript, errors)
    assert f"{llama.url}: your own llama-server, model {llama.alias}" in transcript
    assert f"target: {llama.url}\n" in transcript
    assert run.left_running() == []
    assert llama.get("/health") == {"status": "ok"}


@pytest.mark.component
def test_a_server_that_is_not_there_is_said_so(start: type[Run]):
    run = start("--upstream", "http://127.0.0.1:9")
    code, _, errors = run.end()
    assert code == 1
    assert errors.endswith(
        "hack/try: no llama-server answers at http://127.0.0.1:9: is it running, and its model loaded?\n"
    )
    assert "Traceback" not in errors


@pytest.mark.component
@pytest.mark.llama
@pytest.mark.parametrize(
    "moment",
    ["1. A real llama-server", "random weights", "$ vacancy agent", "the owner returns by"],
)
def test_ctrl_c_is_clean(start: type[Run], moment: str):
    require_llama()
    run = start("--owner", "switch")
    run.until(moment)
    run.interrupt()
    run.interrupt()
    code, _, errors = run.end()
    assert code == 130
    assert errors.endswith("hack/try: interrupted; nothing is left running\n")
    assert "Traceback" not in errors
    assert run.left_running() == []


@pytest.mark.component
@pytest.mark.llama
def test_a_kill_leaves_nothing_running_either(start: type[Run]):
    require_llama()
    run = start("--owner", "switch")
    run.until("the owner returns by")
    run.process.kill()
    assert run.end()[0] == -signal.SIGKILL
    assert run.left_running() == []


@pytest.mark.component
def test_help_needs_no_environment(tmp_path: Path):
    environment = {**os.environ, "VACANCY_VENV": str(tmp_path / "none")}
    done = subprocess.run(
        [str(ROOT / "hack" / "try"), "--owner", "switch", "--help"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_S,
    )
    for word in ("--upstream URL", "--owner switch", "--owner logind", "Leaves nothing running"):
        assert word in done.stdout
    assert not (tmp_path / "none").exists()
