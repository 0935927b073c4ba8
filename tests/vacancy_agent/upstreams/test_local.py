from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from vacancy_agent.clock import SystemClock
from vacancy_agent.core.facts import Instant, ProcessIdentity, Seconds
from vacancy_agent.core.settings import Target
from vacancy_agent.platform.threads import StuckError
from vacancy_agent.upstreams.local import LocalServer
from vacancy_agent.upstreams.process import NotFound
from vacancy_agent.upstreams.sighting import Idle, Unclear, Working

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVER = """
import multiprocessing, socket, sys, threading, time
def burn():
    while True:
        pass
if __name__ == "__main__":
    server = socket.create_server(("127.0.0.1", int(sys.argv[2])))
    fork = multiprocessing.get_context("fork").Process
    if sys.argv[1] == "burns":
        fork(target=burn, daemon=True).start()
    if sys.argv[1] == "burns itself beside a child":
        fork(target=time.sleep, args=(60,), daemon=True).start()
    if sys.argv[1].startswith("burns itself"):
        threading.Thread(target=burn, daemon=True).start()
    print(server.getsockname()[1], flush=True)
    sys.stdin.read()
"""


class Program:
    def __init__(self, how: str, port: int = 0, program: str = sys.executable) -> None:
        command = [program, "-c", SERVER, how, str(port)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def end(self) -> None:
        self.process.communicate()


@pytest.fixture
def idle() -> Iterator[Program]:
    program = Program("idles")
    yield program
    program.end()


def local(port: int, host: str = "127.0.0.1") -> LocalServer:
    return LocalServer(Target("http", host, port), SystemClock())


@pytest.mark.component
async def test_an_idle_server_is_quiet_after_three_seconds(idle: Program):
    before = SystemClock().now()
    sighting = await local(idle.port).look(before)
    assert isinstance(sighting, Idle)
    assert before <= sighting.began <= SystemClock().now() - 3.0


@pytest.mark.component
async def test_a_server_that_uses_a_gpu_is_at_work_however_idle_its_processors_are(idle: Program):
    target = Target("http", "127.0.0.1", idle.port)
    busy = await LocalServer(target, SystemClock(), lambda: 40.0).look(Instant(0.0))
    assert isinstance(busy, Working)
    assert "GPU" in busy.why
    assert isinstance(await LocalServer(target, SystemClock(), lambda: 0.0).look(Instant(0.0)), Idle)


@pytest.mark.component
async def test_a_server_whose_child_computes_is_at_work():
    program = Program("burns")
    try:
        sighting = await local(program.port).look(Instant(0.0))
        assert isinstance(sighting, Working)
        assert "cores" in sighting.why
        assert not sighting.gone
    finally:
        program.end()


@pytest.mark.component
@pytest.mark.parametrize(
    ("name", "how", "expected"),
    [
        ("ollama", "burns itself beside a child", Idle),
        ("ollama", "burns itself", Working),
        ("another", "burns itself beside a child", Working),
    ],
)
async def test_of_a_program_that_hands_its_work_on_only_what_is_below_counts(
    tmp_path: Path, name: str, how: str, expected: type[object]
):
    """Who asks an Ollama for its lists all day keeps no hold from its proof."""
    (tmp_path / name).symlink_to(sys.executable)
    program = Program(how, program=str(tmp_path / name))
    try:
        assert isinstance(await local(program.port).look(Instant(0.0)), expected)
    finally:
        program.end()


@pytest.mark.component
async def test_a_process_is_replaced_only_when_it_ended_and_its_place_was_seen(
    idle: Program, monkeypatch: pytest.MonkeyPatch
):
    server = local(idle.port)
    first = await server.find()
    assert isinstance(first, ProcessIdentity)
    admitted = SystemClock().now()
    assert not await server.replaced(first, admitted)
    idle.end()
    assert await server.replaced(first, admitted), "nothing listens there any more"
    second = Program("idles", idle.port)
    try:
        later = SystemClock().now()
        assert await server.replaced(first, admitted)
        assert not await server.replaced(first, later), "the new process may be the one that has the job"
        found = await server.find()
        assert isinstance(found, ProcessIdentity)
        assert found.pid == second.process.pid
        monkeypatch.setattr(
            "vacancy_agent.upstreams.local.serving_process", lambda _: NotFound("cannot be seen")
        )
        assert not await server.replaced(first, admitted), "not seeing is not knowing"
    finally:
        second.end()


async def test_a_server_elsewhere_or_without_a_process_shows_nothing():
    assert await local(1, "gpu-box").look(Instant(0.0)) == Unclear(
        "the server is on another host and does not show that it is idle"
    )


async def test_a_look_that_hangs_shows_nothing(monkeypatch: pytest.MonkeyPatch):
    server = local(1)

    async def hang(call: object, within: Seconds) -> object:
        raise StuckError("listener of port 1 still hangs")

    monkeypatch.setattr(server._finder, "run", hang)
    assert await server.look(Instant(0.0)) == Unclear("the list of listening sockets does not come")
