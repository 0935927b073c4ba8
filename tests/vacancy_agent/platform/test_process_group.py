from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from vacancy_agent.platform.process_group import SUPERVISED, has_exited, kill_group, set_nonblocking

pytestmark = [
    pytest.mark.component,
    pytest.mark.skipif(sys.platform == "win32", reason="POSIX process groups"),
]


def test_an_end_is_seen_without_reaping() -> None:
    with subprocess.Popen(["true"], start_new_session=True) as process:
        while not has_exited(process.pid):
            time.sleep(0.01)
        assert has_exited(process.pid)
        assert process.wait() == 0


def test_the_whole_group_is_killed() -> None:
    assert SUPERVISED
    read, write = os.pipe()
    process = subprocess.Popen(
        ["sh", "-c", "sleep 300 & exec sleep 300"], stdout=write, start_new_session=True
    )
    os.close(write)
    kill_group(process.pid)
    assert process.wait(10) == -9
    assert os.read(read, 1) == b"", "the grandchild still holds the pipe"
    os.close(read)
    kill_group(process.pid)


def test_reading_returns_at_once() -> None:
    read, write = os.pipe()
    set_nonblocking(read)
    with pytest.raises(BlockingIOError):
        os.read(read, 1)
    os.close(read)
    os.close(write)
