from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from standins.http_text import request
from standins.lending_rig import BORROW, ENTRIES
from vacancy_edge import TokenTable

if TYPE_CHECKING:
    from standins.lending_rig import LendingRig
    from vacancy_agent.proxy.plan import Plan


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


def test_a_plan_of_another_configuration_is_none(rig: LendingRig) -> None:
    first = plan_of(rig)
    rig.host.generation += 1
    second = plan_of(rig)
    assert first is not None
    assert second is not None
    assert (first.generation, second.generation) == (rig.host.generation - 1, rig.host.generation)
    assert plan_of(rig) is second


def test_its_prefix_is_the_head_that_an_upstream_gets(rig: LendingRig) -> None:
    plan = plan_of(rig)
    assert plan is not None
    client = rig.port.connect(request(body={"model": "m"}, token=BORROW))
    head, _, body = rig.port.link().got().partition(b"\r\n\r\n")
    assert head == plan.prefix + b"%d" % len(body)
    client.break_off()
