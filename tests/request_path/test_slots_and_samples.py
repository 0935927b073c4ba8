"""Slots, the sample after a job, and large bodies, in driven time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins import agreement
from standins.hosts import host, resource, upstream
from standins.http_text import answer, reply, request
from standins.lending_rig import BORROW, RELAY, one_upstream
from standins.orders import BODY, order, refused
from vacancy_agent.core.facts import Evidence, MiB
from vacancy_agent.core.settings import Dialect, Footprint, ResourceType
from vacancy_agent.store.journal import MARGIN, SLOTS_PER_PAGE
from vacancy_edge import LARGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from standins.http_engine import Client
    from standins.lending_rig import LendingRig


class TestSlots:
    def test_as_many_at_once_as_the_upstream_has(self, lending: Callable[..., LendingRig]) -> None:
        rig = lending(one_upstream(slots=3))
        clients = [order(rig) for _ in range(3)]
        agreement.check(rig.host, rig.journal, rig.reclaims)
        got = refused(rig)
        assert (got.reason, got.headers["retry-after"]) == ("resource_busy", "2")
        assert "x-should-retry" not in got.headers
        clients[1].hang_up()
        assert refused(rig).reason == "resource_busy", "a held job keeps its place"
        rig.port.link(0).send(reply())
        order(rig)
        agreement.check(rig.host, rig.journal, rig.reclaims)

    def test_two_upstreams_on_one_resource_take_turns(self, lending: Callable[..., LendingRig]) -> None:
        ups = [
            upstream(name, ("ram", *more), dialect=Dialect.OPENAI, slots=2)
            for name, more in (("a", ()), ("b", ("cpu2",)))
        ]
        rig = lending(
            host(ups, [resource("ram", ResourceType.MEMORY), resource("cpu2", ResourceType.MEMORY)])
        )
        one = rig.ports["a"].connect(request(body=BODY, token=BORROW))
        assert one.got() == b""
        assert (
            answer(rig.ports["b"].connect(request(body=BODY, token=BORROW)).got()).reason == "resource_busy"
        )
        rig.ports["a"].link().send(reply())
        assert rig.ports["b"].connect(request(body=BODY, token=BORROW)).got() == b""
        agreement.check(rig.host, rig.journal, rig.reclaims)

    def test_a_full_journal_refuses_and_leaves_nothing(self, lending: Callable[..., LendingRig]) -> None:
        rig = lending()
        partition = rig.journal.partition("up")
        wall = rig.clock.wall()
        slots = [partition.write(900 + n, "x", "", wall) for n in range(partition.capacity)]
        assert len(slots) >= MARGIN
        assert len(slots) % SLOTS_PER_PAGE == 0
        got = refused(rig)
        assert (got.reason, got.error["detail"]) == ("resource_busy", {"cause": "journal_full"})
        assert rig.port.upstream.links == []
        for slot in slots:
            partition.free(slot)
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)
        order(rig)


class TestSamples:
    """The next admission rests on a reading from after the job before."""

    def test_memory_is_read_within_the_call(self, rig: LendingRig) -> None:
        order(rig)
        rig.port.link().send(reply())
        assert rig.samples.wanted == ["ram"]
        assert rig.host.board.unread == {"ram"}
        order(rig)
        assert rig.host.board.unread == set()

    def test_what_it_then_shows_counts(self, lending: Callable[..., LendingRig]) -> None:
        rig = lending(one_upstream(default_footprint=Footprint(MiB(1000))))
        order(rig)
        rig.port.link().send(reply())
        rig.samples.free["ram"] = 900
        got = refused(rig)
        assert got.reason == "insufficient_capacity"
        assert got.error["detail"]["freeMiB"] == 900

    @pytest.fixture
    def card(self, lending: Callable[..., LendingRig]) -> LendingRig:
        """A card whose last job has just ended."""
        rig = lending(one_upstream(kind=ResourceType.NVIDIA, default_footprint=Footprint(MiB(1000))))
        order(rig)
        rig.port.link().send(reply())
        return rig

    def test_a_card_is_waited_for(self, card: LendingRig) -> None:
        client = card.port.connect(request(body=BODY, token=BORROW))
        assert client.got() == b""
        assert not card.host.requests
        card.samples.take("ram")
        assert len(card.host.requests) == 1

    def test_and_the_decision_is_made_anew(self, card: LendingRig) -> None:
        client = card.port.connect(request(body=BODY, token=BORROW))
        card.samples.free["ram"] = 900
        card.samples.take("ram")
        got = answer(client.got())
        assert got.reason == "insufficient_capacity"
        assert got.error["detail"].items() >= {"freeMiB": 900, "needMiB": 1000}.items()

    def test_the_owner_may_have_come_meanwhile(self, card: LendingRig) -> None:
        client = card.port.connect(request(body=BODY, token=BORROW))
        card.presence(Evidence.PRESENT)
        assert client.got() == b""
        card.samples.take("ram")
        assert answer(client.got()).reason == "owner_active"

    def test_a_reading_that_does_not_come_is_busy_once(self, card: LendingRig) -> None:
        client = card.port.connect(request(body=BODY, token=BORROW))
        card.samples.give_up("ram")
        got = answer(client.got())
        assert got.reason == "resource_busy"
        assert got.error["detail"] == {"resource": "ram", "cause": "needs_sample"}
        assert card.tasks.waiting == []

    def test_one_of_two_that_waited_gets_it(self, card: LendingRig) -> None:
        clients = [card.port.connect(request(body=BODY, token=BORROW)) for _ in range(2)]
        card.samples.take("ram")
        answers = [client.got() for client in clients]
        assert answers[0] == b""
        assert answer(answers[1]).reason == "resource_busy"
        agreement.check(card.host, card.journal, card.reclaims)

    def test_a_client_that_leaves_while_it_waits_is_not_work(self, card: LendingRig) -> None:
        client = card.port.connect(request(body=BODY, token=BORROW))
        client.hang_up()
        card.samples.take("ram")
        agreement.check_empty(card.host, card.journal, card.reclaims)
        assert card.port.app.counters.admitted == 1
        assert card.tasks.waiting == []


class TestLargeBodies:
    RAW = b'{"model":"m","prompt":"' + b"x" * LARGE + b'"}'

    def send(self, rig: LendingRig, raw: bytes, token: str = BORROW) -> Client:
        """In pieces, as a socket delivers what is large."""
        whole = request(body=raw, token=token)
        client = rig.port.connect(whole[: 1 << 16])
        for at in range(1 << 16, len(whole), 1 << 18):
            client.send(whole[at : at + (1 << 18)])
        return client

    def test_one_that_is_too_large_for_the_loop_is_judged_aside(self, rig: LendingRig) -> None:
        client = self.send(rig, self.RAW)
        assert rig.helper.asked == 1
        assert not rig.host.requests
        rig.helper.answer()
        assert [job.model for job in rig.host.ledger.jobs()] == ["m"]
        assert client.got() == b""

    def test_at_the_limit_it_is_judged_at_once(self, rig: LendingRig) -> None:
        raw = self.RAW.replace(b"x", b"", len(self.RAW) - LARGE)
        assert len(raw) == LARGE
        self.send(rig, raw)
        assert rig.helper.asked == 0
        assert len(rig.host.requests) == 1

    def test_what_is_wrong_in_it_is_refused(self, rig: LendingRig) -> None:
        client = self.send(rig, self.RAW[:-1])
        rig.helper.answer()
        assert answer(client.got()).status == 400
        assert rig.port.budget.used == 0

    def test_the_gate_is_asked_after_it(self, rig: LendingRig) -> None:
        client = self.send(rig, self.RAW)
        rig.presence(Evidence.PRESENT)
        rig.helper.answer()
        assert answer(client.got()).reason == "owner_active"

    def test_a_client_that_leaves_meanwhile_is_not_work(self, rig: LendingRig) -> None:
        client = self.send(rig, self.RAW)
        client.hang_up()
        assert rig.port.budget.used == 0
        rig.helper.answer()
        assert rig.port.app.counters.admitted == 0
        assert not rig.port.app.counters.refused, "nobody is there to be refused"

    def test_the_gateway_s_rank_is_believed_there_too(self, rig: LendingRig) -> None:
        raw = b'{"priority":1,' + self.RAW[1:]
        for token in (RELAY, BORROW):
            self.send(rig, raw, token)
        rig.helper.answer()
        assert [job.borrower for job in rig.host.ledger.jobs()] == ["gateway"]
