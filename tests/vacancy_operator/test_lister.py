from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from standins.operator_api import DictApi, HandClock
from standins.operator_world import lending_host
from vacancy_operator.api import ApiError
from vacancy_operator.core.kinds import KINDS, LENDING_HOST, Ref
from vacancy_operator.lister import Lister
from vacancy_operator.metrics import Metrics
from vacancy_operator.store import Store

if TYPE_CHECKING:
    from vacancy_operator.api import Api


class Rig:
    def __init__(self, every: float = 300.0) -> None:
        self.api = DictApi()
        self.metrics = Metrics()
        self.changed: list[str] = []
        self.done = 0
        self.store = Store(HandClock(), self.changed.append)
        self.lister = Lister(cast("Api", self.api), self.store, self.metrics, every, self._done)

    def _done(self) -> None:
        self.done += 1

    def missed(self) -> bytes:
        return next(
            (
                x
                for x in self.metrics.text().splitlines()
                if x.startswith(b"vacancy_operator_watch_missed_total")
            ),
            b"",
        )


async def test_a_look_lists_every_kind() -> None:
    rig = Rig()
    rig.api.put(LENDING_HOST, lending_host())
    await rig.lister.look()
    assert rig.api.calls == [f"list {kind.name}" for kind in KINDS]
    assert (rig.changed, rig.done, rig.lister.complete.is_set()) == (["box"], 1, True)
    assert rig.missed() == b"", "the first look is not about what was missed"


async def test_what_a_watch_missed_is_found_and_counted() -> None:
    rig = Rig()
    rig.api.put(LENDING_HOST, lending_host())
    await rig.lister.look()
    del rig.api.objects[Ref(LENDING_HOST, "box")]
    rig.api.version += 1
    await rig.lister.look()
    assert rig.changed == ["box", "box"]
    assert rig.missed().endswith(b'{kind="LendingHost"} 1.0')


@pytest.mark.looptime
async def test_it_looks_again_in_time_when_asked_and_after_a_failure() -> None:
    rig = Rig()
    loop = asyncio.get_running_loop()
    failures = [
        ApiError(404, "GET /apis/vacancy.dev/v1alpha1/lendinghosts: not found"),
        ApiError(None, "cut"),
    ]
    rig.api.fail = lambda _: failures.pop(0) if failures else None
    async with asyncio.TaskGroup() as group:
        task = group.create_task(rig.lister.run())
        await rig.lister.complete.wait()
        assert loop.time() == pytest.approx(3.0, abs=0.5)
        await asyncio.sleep(299.0)
        assert rig.done == 1
        await asyncio.sleep(2.0)
        assert rig.done == 2
        rig.lister.ask()
        await asyncio.sleep(0.01)
        assert rig.done == 3
        task.cancel()
