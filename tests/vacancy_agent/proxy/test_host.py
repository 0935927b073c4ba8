from __future__ import annotations

from typing import TYPE_CHECKING

from standins.http_text import reply, request
from standins.lending_rig import BORROW, one_upstream

if TYPE_CHECKING:
    from collections.abc import Callable

    from standins.lending_rig import LendingRig


def test_counters_outlive_the_listener(rig: LendingRig) -> None:
    counters = rig.host.counters_of("up")
    counters.admitted += 1
    assert rig.host.counters_of("up") is counters
    assert rig.port.app.counters is counters
    assert rig.host.counters_of("other") is not counters


def test_use_is_counted_by_borrower_until_somebody_takes_it(lending: Callable[..., LendingRig]) -> None:
    rig = lending(one_upstream(slots=2))
    for _ in range(2):
        rig.port.connect(request(body={"model": "m"}, token=BORROW))
    rig.advance(2.0)
    for index in range(2):
        rig.port.link(index).send(reply())
    used = rig.host.used["ci"]
    assert used.requests == 2
    assert 4.0 <= used.seconds < 4.1
    rig.host.used = {}
    rig.port.connect(request(body={"model": "m"}, token=BORROW))
    rig.port.link().send(reply())
    assert rig.host.used["ci"].requests == 1
