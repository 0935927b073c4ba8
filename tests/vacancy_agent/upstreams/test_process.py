from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from vacancy_agent.core.facts import Instant, ProcessIdentity
from vacancy_agent.core.settings import Target
from vacancy_agent.upstreams import process as module
from vacancy_agent.upstreams.process import (
    NotFound,
    NotLocal,
    Relayed,
    accepting_processes,
    is_alive,
    local_addresses,
    sample_tree,
    serving_process,
    started_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

component = pytest.mark.component
NOW = Instant(0.0)

SERVER = """
import os, socket, sys, time
server = socket.create_server(("127.0.0.1", 0))
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        time.sleep(3600)
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""


def start(children: int = 0) -> tuple[subprocess.Popen[bytes], int]:
    command = [sys.executable, "-c", SERVER, str(children)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout is not None
    return server, int(server.stdout.readline())


def end(server: subprocess.Popen[bytes]) -> None:
    tree = psutil.Process(server.pid).children(recursive=True) if psutil.pid_exists(server.pid) else []
    for child in tree:
        child.kill()
    server.kill()
    server.communicate()


@pytest.fixture
def server() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    running = start()
    yield running
    end(running[0])


def target(port: int, host: str = "127.0.0.1") -> Target:
    return Target("http", host, port)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.8.8", "::1"])
def test_loopback_names_this_machine(host: str):
    assert local_addresses(host)


@pytest.mark.parametrize("host", ["gpu-box", "localhost.example", "192.0.2.1", "2001:db8::1", "0.0.0.0", ""])
def test_other_hosts_and_every_name_do_not(host: str):
    assert local_addresses(host) is None


def test_an_address_of_an_interface_is_this_machine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_own_addresses", lambda: {"192.0.2.1"})
    assert local_addresses("192.0.2.1") == {"192.0.2.1"}


ADDRESSES = frozenset({"127.0.0.1"})


@pytest.mark.parametrize(
    ("sockets", "expected"),
    [
        ([], set()),
        ([("127.0.0.1", 1)], {1}),
        ([("0.0.0.0", 2)], {2}),
        ([("::", 2)], {2}),
        ([("127.0.0.1", 1), ("0.0.0.0", 2)], {1}),
        ([("192.0.2.9", 4)], set()),
        ([("127.0.0.1", None)], {None}),
        ([("127.0.0.1", 1), ("127.0.0.1", 5)], {1, 5}),
    ],
)
def test_the_listener_on_the_address_itself_comes_first(sockets, expected: set[int | None]):
    assert accepting_processes(sockets, ADDRESSES) == expected


@component
def test_finds_the_process_behind_a_port_and_tells_it_from_its_successor(server):
    running, port = server
    found = serving_process(target(port))
    assert found == ProcessIdentity(running.pid, started_at(psutil.Process(running.pid)))
    assert isinstance(found, ProcessIdentity)
    assert is_alive(found)
    assert not is_alive(ProcessIdentity(found.pid, found.started + 1))
    end(running)
    assert not is_alive(found)
    assert serving_process(target(port)) == NotFound("nothing listens there", nothing_listens=True)


@component
def test_a_process_that_only_waits_to_be_reaped_is_gone():
    running, _ = start()
    identity = ProcessIdentity(running.pid, started_at(psutil.Process(running.pid)))
    running.kill()
    os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(identity)
    assert sample_tree(identity, Instant(0.0)) is None
    running.communicate()


@component
def test_of_a_server_and_its_workers_the_server_is_meant():
    running, port = start(children=2)
    try:
        found = serving_process(target(port))
        assert isinstance(found, ProcessIdentity)
        assert found.pid == running.pid
        sample = sample_tree(found, Instant(3.0))
        assert sample is not None
        assert len(sample.cpu) == 3
        assert (sample.at, sample.root, sample.gpu) == (3.0, found, None)
    finally:
        end(running)


@component
def test_two_servers_on_one_port_are_nobodys():
    program = (
        "import socket, sys; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1);"
        "s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(); print(s.getsockname()[1], flush=True);"
        "sys.stdin.read()"
    )
    servers, port = [], 0
    try:
        for _ in range(2):
            command = [sys.executable, "-c", program, str(port)]
            servers.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            port = int(servers[-1].stdout.readline())
        found = serving_process(target(port))
        assert isinstance(found, NotFound)
        assert found.why.startswith("several processes listen there")
        assert not found.nothing_listens
    finally:
        for running in servers:
            end(running)


@component
def test_a_relay_is_not_the_server(server, monkeypatch: pytest.MonkeyPatch):
    running, port = server
    monkeypatch.setattr(module, "RELAYS", frozenset({psutil.Process(running.pid).name()}))
    found = serving_process(target(port))
    assert isinstance(found, Relayed)
    assert found.listener.pid == running.pid


@component
def test_a_target_elsewhere_selects_no_process_by_its_port(server):
    _, port = server
    assert serving_process(target(port, "gpu-box")) == NotLocal()


def test_sockets_that_cannot_be_read_are_unknown(monkeypatch: pytest.MonkeyPatch):
    def denied(port: int) -> list[object]:
        raise PermissionError("denied")

    monkeypatch.setattr(module, "listeners", denied)
    assert serving_process(target(1)) == NotFound("listening sockets cannot be read: denied")


def test_another_users_process_is_unknown_not_absent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "listeners", lambda _: [("127.0.0.1", None)])
    found = serving_process(target(1))
    assert found == NotFound("its process cannot be seen: the agent lacks the right to look")


@component
def test_localhost_is_looked_up_as_loopback():
    with socket.create_server(("127.0.0.1", 0)) as own:
        found = serving_process(target(own.getsockname()[1], "localhost"))
        assert isinstance(found, ProcessIdentity)
        assert found.pid == os.getpid()


@component
def test_without_a_free_descriptor_nobody_is_taken_for_ended_nor_for_quiet(
    server: tuple[subprocess.Popen[bytes], int],
):
    identity = serving_process(target(server[1]))
    assert isinstance(identity, ProcessIdentity)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        alive, sample, found = (
            is_alive(identity),
            sample_tree(identity, NOW),
            serving_process(target(server[1])),
        )
        own = local_addresses("192.0.2.1")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert alive
    assert sample is None
    assert isinstance(found, NotFound)
    assert not found.nothing_listens
    assert own is None
    assert sample_tree(identity, NOW) is not None


@component
def test_a_tree_of_which_a_part_cannot_be_looked_at_is_no_sample(monkeypatch: pytest.MonkeyPatch):
    server, port = start(children=1)
    try:
        identity = serving_process(target(port))
        assert isinstance(identity, ProcessIdentity)
        look = started_at

        def refuse_children(process: psutil.Process) -> float:
            if process.pid != server.pid:
                raise psutil.AccessDenied(process.pid)
            return look(process)

        monkeypatch.setattr(module, "started_at", refuse_children)
        assert sample_tree(identity, NOW) is None
    finally:
        end(server)
