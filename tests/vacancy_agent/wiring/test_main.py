"""The process around one agent: what keeps it from starting is a sentence with the place to change."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from standins.agent_process import AgentProcess
from standins.agents import free_port, manifest
from standins.require import require
from vacancy_agent import cli
from vacancy_agent.store.errors import StoreError
from vacancy_agent.store.schema import MIGRATIONS
from vacancy_agent.store.sqlite import LocalStore
from vacancy_agent.wiring import main
from vacancy_agent.wiring import tell as log
from vacancy_agent.wiring.agent import Agent
from vacancy_agent.wiring.api_server import ApiServer
from vacancy_agent.wiring.listeners import Listeners
from vacancy_agent.wiring.main import StartError, loop_run
from vacancy_agent.wiring.readings import Readings
from vacancy_agent.wiring.supervise import PartEndedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CRASHING = """
import sys
from vacancy_agent.collect import presence
def fail(self):
    raise LookupError("a bug in a collector")
presence.PresenceLoop._sample = fail
from vacancy_agent.cli import main
sys.exit(main(sys.argv[1:]))
"""


class Start:
    """`vacancy agent` within this process: what it wrote, and the code it ended with."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.path = folder / "host.json"
        self.state = folder / "state"
        self.document = manifest("http://127.0.0.1:9")
        self._capsys = capsys

    def run(self, *options: str, content: bytes | None = None) -> tuple[int, list[str]]:
        """Its code and what it wrote to standard error, the log apart."""
        if content is not None or not self.path.exists():
            self.path.write_bytes(json.dumps(self.document).encode() if content is None else content)
        self._capsys.readouterr()
        code = cli.main(["agent", "--manifest", str(self.path), "--state-dir", str(self.state), *options])
        lines = self._capsys.readouterr().err.splitlines()
        return code, [line for line in lines if line.startswith("vacancy agent: ")]


@pytest.fixture
def start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Start]:
    kept = (log.LOGGER.handlers[:], log.LOGGER.level, log.LOGGER.propagate)
    yield Start(tmp_path, capsys)
    log.LOGGER.handlers[:], log.LOGGER.level, log.LOGGER.propagate = kept


@pytest.fixture
def ends_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a signal came as soon as it lends."""
    stops: list[asyncio.Event] = []
    run = Agent.run

    async def run_and_stop(self: Agent) -> None:
        ready = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(run(self, ready))
            await ready.wait()
            stops[-1].set()

    monkeypatch.setattr(main, "on_signals", lambda stop, _again: stops.append(stop))
    monkeypatch.setattr(Agent, "run", run_and_stop)


# The manifest


def test_a_manifest_that_is_not_there(start: Start):
    start.path.mkdir()
    assert start.run() == (2, [f"vacancy agent: {start.path}: cannot be read: Is a directory"])


def test_a_manifest_that_is_no_yaml(start: Start):
    code, (line, *_) = start.run(content=b"spec: [")
    assert code == 2
    assert line.startswith(f"vacancy agent: {start.path}: ")


def test_a_wrong_manifest_names_every_error(start: Start):
    start.document["spec"]["upstreams"][0] |= {"slots": 0, "resource": "none", "dialect": "gopher"}
    code, lines = start.run()
    assert code == 2
    paths = {line.removeprefix(f"vacancy agent: {start.path}: ").split(":")[0] for line in lines}
    assert paths == {f"spec.upstreams[0].{name}" for name in ("slots", "resource", "dialect")}


def test_a_missing_secret_and_a_missing_certificate(start: Start):
    start.document["spec"]["upstreams"][0]["credentialSecretRef"] = {"name": "key", "key": "token"}
    start.document["spec"]["access"]["tls"] = {"secretRef": {"name": "cert"}}
    code, (credential, certificate) = start.run()
    assert code == 2
    assert credential.endswith(f"write it to {start.state / 'secrets' / 'key' / 'token'}")
    assert "spec.upstreams[0].credentialSecretRef" in credential
    assert certificate.endswith(f"write it to {start.state / 'secrets' / 'cert' / 'tls.crt'}")
    assert "spec.access.tls.secretRef" in certificate


def test_a_machine_that_cannot_judge_a_manifest(start: Start, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    told = "the manifest could not be judged: its process ended with 1"
    assert start.run() == (1, [f"vacancy agent: {start.path}: {told}"])


# The state directory


def test_a_state_directory_that_is_a_file(start: Start):
    start.state.write_text("")
    code, (line,) = start.run()
    assert code == 1
    assert line.startswith(f"vacancy agent: cannot make the folder {start.state}: ")


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"borrow": "x"}', '{"borrow": "b", "read": 5, "admin": "a"}']
)
def test_tokens_that_cannot_be_read(start: Start, content: str):
    start.state.mkdir()
    (start.state / "tokens.json").write_text(content)
    code, (line,) = start.run()
    assert code == 1
    assert str(start.state / "tokens.json") in line
    assert line.endswith("delete it to have new ones made")


def test_a_database_of_a_newer_version(start: Start):
    start.state.mkdir()
    with sqlite3.connect(start.state / "vacancy.sqlite3") as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    code, (line,) = start.run()
    assert code == 1
    assert "was written by a newer vacancy" in line


def test_a_hold_journal_that_cannot_be_had(start: Start):
    start.state.mkdir()
    (start.state / "holds").write_text("in the way")
    code, (line,) = start.run()
    assert code == 1
    assert line.startswith(f"vacancy agent: cannot make the folder {start.state / 'holds'}")


@pytest.mark.component
def test_a_journal_file_that_cannot_be_had(start: Start):
    (start.state / "holds" / "up.holds").mkdir(parents=True)
    code, (line,) = start.run()
    assert code == 1
    assert line.startswith(
        f"vacancy agent: cannot read the hold journal {start.state / 'holds' / 'up.holds'}"
    )


@pytest.mark.component
def test_a_file_system_that_is_read_only(start: Start):
    require(shutil.which("unshare") and os.geteuid() == 0, "unshare as root", "apt-get install util-linux")
    start.path.write_text(json.dumps(start.document))
    start.state.mkdir()
    inside = 'mount -t tmpfs -o ro,mode=700 tmpfs "$1" && shift && exec "$@"'
    private = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", inside, "sh", str(start.state)]
    agent = [sys.executable, "-m", "vacancy_agent.cli", "agent", "--manifest", str(start.path)]
    done = subprocess.run(
        [*private, *agent, "--state-dir", str(start.state)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"vacancy agent: cannot open the lock {start.state / 'lock'}: Read-only file system"
        " (the file system is read-only: choose another --state-dir)\n"
    )


@pytest.mark.component
def test_a_second_agent_on_the_same_state_directory(start: Start, tmp_path: Path):
    with AgentProcess(tmp_path / "first", start.document, state=start.state) as first:
        first.until(lambda: (start.state / "tokens.json").exists())
        assert start.run() == (
            1,
            [
                f"vacancy agent: another agent (process {first.process.pid}) uses {start.state}: stop it, or"
                " give --state-dir"
            ],
        )
        assert first.process.poll() is None


@pytest.mark.component
@pytest.mark.usefixtures("ends_soon")
def test_a_damaged_database_is_set_aside_and_said_so(start: Start, capsys: pytest.CaptureFixture[str]):
    start.state.mkdir()
    (start.state / "vacancy.sqlite3").write_bytes(b"not a database at all" * 100)
    start.path.write_text(json.dumps(start.document))
    code = cli.main(["agent", "--manifest", str(start.path), "--state-dir", str(start.state), "--quiet"])
    assert code == 0
    (line,) = [one for one in capsys.readouterr().err.splitlines() if "set aside" in one]
    aside = start.state / "vacancy.sqlite3.damaged-1"
    assert line.endswith(f'store set aside file={aside} lost="switches made here, usage"')
    assert aside.read_bytes().startswith(b"not a database")


# The sockets


@pytest.mark.component
def test_a_port_of_the_api_that_is_taken(start: Start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = start.document["spec"]["access"]["apiPort"] = taken.getsockname()[1]
        assert start.run() == (
            1,
            [
                f"vacancy agent: spec.access.apiPort: the API cannot listen on 127.0.0.1:{port}:"
                " another program listens there"
            ],
        )


@pytest.mark.component
def test_an_address_that_is_not_this_machines(start: Start):
    start.document["spec"]["access"]["listen"] = "192.0.2.1"
    code, (line,) = start.run()
    assert code == 1
    assert line.startswith("vacancy agent: spec.access.listen: the API cannot listen on 192.0.2.1:")


# Its life


@pytest.mark.component
@pytest.mark.usefixtures("ends_soon")
def test_the_first_start_says_where_the_tokens_are_and_never_what_they_are(
    start: Start, capsys: pytest.CaptureFixture[str]
):
    for event in ("tokens made", "tokens"):
        start.path.write_text(json.dumps(start.document))
        assert cli.main(["agent", "--manifest", str(start.path), "--state-dir", str(start.state)]) == 0
        shown = capsys.readouterr().err
        assert f"{event} file={start.state / 'tokens.json'}" in shown
        tokens = json.loads((start.state / "tokens.json").read_text())
        assert not any(token in shown for token in tokens.values())
        assert (start.state / "tokens.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.component
@pytest.mark.usefixtures("ends_soon")
def test_the_api_goes_first_so_that_no_switch_is_taken_and_lost(
    start: Start, monkeypatch: pytest.MonkeyPatch
):
    order: list[str] = []

    def noting(kind: type, name: str) -> None:
        before = getattr(kind, name)

        async def noted(self: object, *args: object) -> None:
            order.append(kind.__name__)
            await before(self, *args)

        monkeypatch.setattr(kind, name, noted)

    for kind in (ApiServer, Listeners, LocalStore):
        noting(kind, "close")
    assert start.run() == (0, [])
    assert list(dict.fromkeys(order[1:])) == ["ApiServer", "Listeners", "LocalStore"]


@pytest.mark.component
def test_a_bug_in_a_part_ends_it_with_its_traceback(start: Start, monkeypatch: pytest.MonkeyPatch):
    def fail(_self: Readings) -> None:
        raise LookupError("a bug in the wiring")

    monkeypatch.setattr(Readings, "tick", fail)
    code, lines = start.run()
    assert (code, lines) == (1, ["vacancy agent: the clock failed: LookupError: a bug in the wiring"])
    shown = "\n".join(log.recent())
    assert "a part of the agent has ended" in shown
    assert "Traceback" in shown


@pytest.mark.component
def test_a_crash_of_the_process_is_seen_from_outside(tmp_path: Path):
    document: dict[str, Any] = manifest("http://127.0.0.1:9", port=free_port())
    with AgentProcess(tmp_path, document, program=("-c", CRASHING)) as agent:
        assert agent.process.wait(30) == 1
        assert "LookupError: a bug in a collector" in agent.text
        assert "Traceback (most recent call last)" in agent.text


def test_only_errors_with_words_for_people_are_told_as_a_sentence():
    full, broken = StoreError("disk full"), StoreError("no file")
    nested = ExceptionGroup("a", [full, ExceptionGroup("b", [broken])])
    assert main._sentences(nested) == ["disk full", "no file"]
    assert main._sentences(ExceptionGroup("a", [full, PartEndedError("the clock ended"), full])) == [
        "disk full",
        "the clock ended",
    ]
    assert main._sentences(ExceptionGroup("a", [full, ExceptionGroup("b", [ValueError("a bug")])])) is None


def test_a_start_error_is_all_its_lines():
    assert str(StartError(["one", "two"], input_is_wrong=True)) == "one; two"


def test_the_loop_is_the_quick_one_where_there_is_one():
    seen = []

    async def look() -> None:
        seen.append(type(asyncio.get_running_loop()).__module__)

    loop_run(look())
    assert seen == ["uvloop"]
