"""The lab leaves nothing behind, whatever becomes of who uses it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lab.logind_lab import INSTALL_HINT, missing
from standins.require import require

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.logind_lab import LogindLab

pytestmark = [pytest.mark.component, pytest.mark.logind]
HACK = Path(__file__).resolve().parents[2] / "hack"
USER = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[1])
from lab.logind_lab import LogindLab
async def main():
    async with LogindLab() as lab:
        await lab.create(seat="seat0", runs="sway")
        lab.freeze()
        facts = dict(lab._facts, leaders=[s.leader.pid for s in lab._sessions.values()])
        print(json.dumps(facts), flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


def wait_for(holds: Callable[[], bool]) -> bool:
    for _ in range(1000):
        if holds():
            return True
        time.sleep(0.01)
    return False


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_after(how: signal.Signals) -> None:
    lacking = missing()
    require(lacking is None, f"systemd-logind in a private namespace ({lacking})", INSTALL_HINT)
    argv = [sys.executable, "-c", USER, str(HACK)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as user:
        assert user.stdout is not None
        facts = json.loads(user.stdout.readline())
        os.kill(user.pid, how)
        user.wait(20)
    for pid in (facts["bus_pid"], facts["logind_pid"], *facts["leaders"]):
        assert wait_for(lambda pid=pid: is_gone(pid))  # type: ignore[misc]
    assert wait_for(lambda: not Path(facts["folder"]).exists())


async def test_the_machines_own_login_state_is_not_touched(logind_lab: LogindLab) -> None:
    own = Path("/run/systemd/sessions")
    before = sorted(own.iterdir()) if own.exists() else []
    await logind_lab.create(seat="seat0")
    assert (sorted(own.iterdir()) if own.exists() else []) == before
