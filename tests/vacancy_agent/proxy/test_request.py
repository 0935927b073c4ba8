from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.http_text import request
from standins.lending_rig import BORROW
from vacancy_agent.core.facts import Evidence

if TYPE_CHECKING:
    from standins.lending_rig import LendingRig


def test_a_request_has_no_job_before_it_is_admitted(rig: LendingRig) -> None:
    client = rig.port.connect(request(body={"model": "m"}, token=BORROW)[:-1])
    x = client.protocol.exchange
    assert x is not None
    asked = x.context
    assert (asked.job, asked.slot, asked.started, asked.watch) == (None, -1, None, None)
    client.send(b"}")
    assert rig.host.requests == {asked.job.id: asked}
    assert asked.slot >= 0
    assert asked.started == rig.clock.wall()
    assert asked.exchange is x


def test_a_refused_one_never_has_one(rig: LendingRig) -> None:
    rig.presence(Evidence.PRESENT)
    client = rig.port.connect(request(body={"model": "m"}, token=BORROW)[:-1])
    assert client.protocol.exchange is not None
    asked = client.protocol.exchange.context
    client.send(b"}")
    assert asked.job is None


def test_it_takes_no_more_fields_than_it_has(rig: LendingRig) -> None:
    client = rig.port.connect(request(body={"model": "m"}, token=BORROW))
    assert client.protocol.exchange is not None
    with pytest.raises(AttributeError):
        client.protocol.exchange.context.anything = 1
