from __future__ import annotations

import time

from vacancy_operator.clock import SystemClock


def test_both_clocks_go_on() -> None:
    first = SystemClock().now()
    second = SystemClock().now()
    assert second.instant >= first.instant
    assert abs(first.wall - time.time()) < 60
