from __future__ import annotations

import asyncio
import threading
import time

import pytest
import uvloop

from standins.until import until
from vacancy_agent.clock import SystemClock
from vacancy_agent.collect.child import ChildDeadlineError, ChildUnkillableError
from vacancy_agent.collect.runner import ProbeRunner
from vacancy_agent.core.facts import Seconds

pytestmark = pytest.mark.component


def runner(deadline: float = 20.0) -> ProbeRunner:
    return ProbeRunner("probe", SystemClock(), deadline=Seconds(deadline))


async def test_runs_one_after_another() -> None:
    probe = runner()
    for number in ("1", "2"):
        assert (await probe.run(["echo", number])).stdout == f"{number}\n".encode()


async def test_after_a_deadline_the_next_run_is_fine() -> None:
    probe = runner(0.2)
    with pytest.raises(ChildDeadlineError):
        await probe.run(["sleep", "300"])
    assert (await probe.run(["echo", "1"])).returncode == 0
    assert probe.abandoned == 0


async def test_while_one_cannot_be_killed_no_other_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = runner(0.1)
    with monkeypatch.context() as patch:
        patch.setattr("vacancy_agent.collect.child.kill_group", lambda _pid: None)
        with pytest.raises(ChildUnkillableError):
            await probe.run(["sleep", "300"])
        for _ in range(3):
            with pytest.raises(ChildUnkillableError, match="no other is started"):
                await probe.run(["sleep", "300"])
    assert probe.abandoned == 1
    assert probe._child is not None
    probe.kill()
    await until(probe._child.gone)
    assert (await probe.run(["echo", "1"])).stdout == b"1\n"


async def test_a_program_that_hangs_while_it_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vacancy_agent.collect.runner._GRACE", 0.1)
    monkeypatch.setattr(ProbeRunner, "_work", lambda *_: threading.Event().wait(1.5))
    probe = runner(0.1)
    with pytest.raises(ChildDeadlineError, match="hangs in the kernel"):
        await probe.run(["echo"])
    with pytest.raises(ChildUnkillableError, match="hangs in the kernel"):
        await probe.run(["echo"])
    assert probe.abandoned == 1


async def test_cancelling_kills_the_program() -> None:
    probe = runner()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(probe.run(["sleep", "300"]))
        await until(lambda: probe._child is not None)
        child = probe._child
        assert child is not None
        task.cancel()
    await until(child.gone)


async def test_the_loop_is_never_blocked_for_long_by_a_program_that_hangs() -> None:
    probe = runner(2.5)
    longest = 0.0
    async with asyncio.TaskGroup() as group:

        async def hang() -> None:
            with pytest.raises(ChildDeadlineError):
                await probe.run(["sleep", "300"])

        task = group.create_task(hang())
        while not task.done():
            began = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - began)
    assert longest < 1.25, "half the time that the program hung"


def test_under_uvloop() -> None:
    async def main() -> None:
        assert (await runner().run(["echo", "1"])).stdout == b"1\n"
        with pytest.raises(ChildDeadlineError):
            await runner(0.1).run(["sleep", "300"])

    uvloop.run(main())
