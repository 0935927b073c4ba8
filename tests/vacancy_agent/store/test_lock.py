from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from vacancy_agent.store.errors import InUseError, StoreError
from vacancy_agent.store.lock import DirLock

if TYPE_CHECKING:
    from pathlib import Path

HOLDER = """
import sys
from pathlib import Path
from vacancy_agent.store.lock import DirLock
lock = DirLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused_until_the_first_ends_however_it_ends(tmp_path: Path):
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().split() == [b"held"]
        with pytest.raises(
            InUseError, match=rf"another agent \(process {holder.pid}\) uses .*give --state-dir"
        ):
            DirLock(path)
        holder.kill()
    DirLock(path).release()


def test_a_lock_that_cannot_be_made_says_why(tmp_path: Path):
    with pytest.raises(StoreError, match="open the lock"):
        DirLock(tmp_path / "missing" / "lock")
