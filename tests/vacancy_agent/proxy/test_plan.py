from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from standins.http_text import request
from standins.lending_rig import BORROW, ENTRIES
from vacancy_agent.proxy.plan import MOST_PLANS, Plan, Plans
from vacancy_edge import TokenTable
from vacancy_http.request_parser import RequestHead

if TYPE_CHECKING:
    from standins.lending_rig import LendingRig


def plan_of(rig: LendingRig, **more: object) -> Plan | None:
    """The plan of a chat request that waits for the last byte of its body."""
    client = rig.port.connect(request(body={"model": "m"}, token=BORROW, **more)[:-1])
    x = client.protocol.exchange
    found = None if x is None else x.context.plan
    client.break_off()
    return found


def test_an_equal_head_has_the_same_plan_whatever_its_body(rig: LendingRig) -> None:
    assert plan_of(rig) is plan_of(rig)


def test_what_changes_between_two_requests_is_asked_anew(rig: LendingRig) -> None:
    first = rig.port.connect(request(body={"model": "m"}, token=BORROW))
    assert rig.port.link().got()
    second = rig.port.connect(request(body={"model": "m"}, token=BORROW))
    assert b"resource_busy" in second.got(), "the first one has the only slot"
    first.break_off()


def test_a_token_that_is_taken_away_is_refused_at_once(rig: LendingRig) -> None:
    assert plan_of(rig) is not None
    rig.host.tokens = TokenTable(ENTRIES[1:])
    rig.host.generation += 1
    client = rig.port.connect(request(body={"model": "m"}, token=BORROW))
    assert b" 401 " in client.got()


def test_trusted_loopback_is_not_kept_for_the_next_connection(rig: LendingRig) -> None:
    rig.host.access = replace(rig.host.access, trust_loopback=True)
    bare = request(body={"model": "m"}, token=None, headers={"host": "localhost:8471"})
    client = rig.port.connect()
    client.protocol.peer = ("127.0.0.1", 1)
    client.send(bare[:-1])
    assert client.protocol.exchange is not None
    client.break_off()
    stranger = rig.port.connect()
    stranger.protocol.peer = ("192.0.2.7", 1)
    stranger.send(bare)
    assert b" 401 " in stranger.got()


def test_there_are_never_more_than_so_many(rig: LendingRig) -> None:
    plan = plan_of(rig)
    assert plan is not None
    plans = Plans()
    heads = [RequestHead() for _ in range(MOST_PLANS + 1)]
    for head in heads:
        plans.keep(head, 0, plan)
    assert [plans.get(head, 0) for head in heads].count(plan) == 1
    assert plans.get(heads[-1], 0) is plan


@pytest.mark.parametrize(("kept_at", "asked_at", "there"), [(3, 3, True), (3, 4, False), (4, 3, False)])
def test_a_plan_of_another_configuration_is_none(
    rig: LendingRig, kept_at: int, asked_at: int, there: bool
) -> None:
    plan, head, plans = plan_of(rig), RequestHead(), Plans()
    assert plan is not None
    plans.keep(head, kept_at, plan)
    assert (plans.get(head, asked_at) is plan) is there
