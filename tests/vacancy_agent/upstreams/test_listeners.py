from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from vacancy_agent.upstreams import listeners as module
from vacancy_agent.upstreams.listeners import decode_address, listeners

if TYPE_CHECKING:
    from pathlib import Path

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
little = pytest.mark.skipif(sys.byteorder != "little", reason="recorded on a little-endian machine")


@little
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0100007F", "127.0.0.1"),
        ("00000000", "0.0.0.0"),
        ("00000000000000000000000000000000", "::"),
        ("00000000000000000000000001000000", "::1"),
        ("0000000000000000FFFF00000100007F", "127.0.0.1"),
        ("B80D0120000000000000000001000000", "2001:db8::1"),
    ],
)
def test_addresses_of_proc(text: str, expected: str):
    assert decode_address(text) == expected


@linux
@pytest.mark.component
def test_names_every_process_that_has_the_socket():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[server.fileno()]) as child:
            assert set(listeners(port)) == {("127.0.0.1", os.getpid()), ("127.0.0.1", child.pid)}
            child.communicate()
    assert listeners(port) == []


@linux
@pytest.mark.component
def test_a_socket_whose_process_cannot_be_seen_is_still_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (tmp_path / "self").symlink_to("/proc/self")
        monkeypatch.setattr(module, "PROC", tmp_path)
        assert listeners(port) == [("127.0.0.1", None)]
