from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from standins.until import until
from vacancy_agent.core.facts import Seconds
from vacancy_agent.platform.threads import Aside, StuckError


async def test_returns_and_raises_what_the_call_does() -> None:
    aside: Aside[int] = Aside("probe")
    for number in range(200):
        assert await aside.run(lambda number=number: number, Seconds(10)) == number  # type: ignore[misc]
    with pytest.raises(ZeroDivisionError):
        await aside.run(lambda: 1 // 0, Seconds(10))
    assert aside.abandoned == 0


async def test_a_hung_call_is_given_up_and_no_second_one_is_started() -> None:
    aside: Aside[bool] = Aside("probe")
    release = threading.Event()
    started = []

    def hang() -> bool:
        started.append(1)
        return release.wait(30)

    with pytest.raises(TimeoutError):
        await aside.run(hang, Seconds(0.05))
    for _ in range(3):
        with pytest.raises(StuckError):
            await aside.run(hang, Seconds(0.05))
    assert (len(started), aside.abandoned) == (1, 1)
    release.set()
    await until(aside._ended.is_set)
    assert await aside.run(lambda: True, Seconds(10)) is True


async def test_a_timeout_that_the_call_raises_itself_is_no_hang() -> None:
    aside: Aside[None] = Aside("probe")

    def refuse() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await aside.run(refuse, Seconds(10))
    assert aside.abandoned == 0


async def test_the_loop_goes_on_meanwhile() -> None:
    aside: Aside[bool] = Aside("probe")
    ticks = 0
    async with asyncio.TaskGroup() as group:
        call = group.create_task(aside.run(lambda: threading.Event().wait(0.3), Seconds(10)))
        while not call.done():
            await asyncio.sleep(0.005)
            ticks += 1
    assert ticks > 10


def test_a_hung_call_does_not_keep_the_process_alive() -> None:
    program = """
import asyncio, threading
from vacancy_agent.platform.threads import Aside
async def main():
    try:
        await Aside("probe").run(threading.Event().wait, 0.05)
    except TimeoutError:
        print("left")
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=20, check=True)
    assert done.stdout == b"left\n"
    assert done.stderr == b""


def test_a_call_that_outlives_its_loop_is_quiet() -> None:
    release = threading.Event()
    aside: Aside[bool] = Aside("probe")

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await aside.run(release.wait, Seconds(0.02))

    asyncio.run(main())
    release.set()
    assert aside._ended.wait(10)
