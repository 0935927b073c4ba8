from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest

from standins import agreement
from standins.hosts import host, resource, upstream
from standins.http_text import DONE, LAST, STREAM_HEAD, WORD, answer, reply, request
from standins.lending_rig import BORROW, one_upstream
from standins.orders import BODY, STREAM, held, order, outcomes, refused
from vacancy_agent.core.facts import Evidence, MiB
from vacancy_agent.core.job import ReleasedBy
from vacancy_agent.core.settings import Footprint, ResourceType
from vacancy_agent.proxy.counters import Outcome
from vacancy_agent.proxy.work import EARLY_BODY, TOLD_FOR
from vacancy_agent.store.journal_format import Phase
from vacancy_api.reasons import Reason
from vacancy_http import UpstreamLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from standins.http_engine import Client
    from standins.lending_rig import LendingRig


class TestOneRequest:
    def test_is_in_every_book_while_it_runs_and_in_none_after_its_reply(self, rig: LendingRig) -> None:
        client = order(rig)
        (job,) = rig.host.ledger.jobs()
        assert (job.borrower, job.model, job.phase) == ("ci", "m", "forwarding")
        (slot,) = rig.journal.partition("up").holds()
        assert slot.record is not None
        assert (slot.record.job, slot.record.borrower, slot.record.model) == (job.id, "ci", "m")
        assert slot.record.phase is Phase.FORWARDING
        agreement.check(rig.host, rig.journal, rig.reclaims)
        rig.port.link().send(reply({"ok": 1}))
        assert answer(client.got()).status == 200
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)
        assert outcomes(rig) == {Outcome.COMPLETED: 1}
        assert rig.port.app.counters.admitted == 1
        assert rig.host.used["ci"].requests == 1
        assert rig.port.budget.used == 0

    def test_is_written_to_the_journal_before_a_byte_of_it_is_sent(self, rig: LendingRig) -> None:
        rig.port.upstream.waits = True
        order(rig)
        assert len(rig.journal.partition("up").holds()) == 1
        assert not hasattr(rig.port.upstream.links[0], "transport")

    @pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
    def test_that_the_server_refuses_is_over_and_passes_as_it_is(self, rig: LendingRig, status: int) -> None:
        client = order(rig)
        rig.port.link().send(reply(b"the server's words", status, "text/plain"))
        got = answer(client.got())
        assert (got.status, got.body, got.reason) == (status, b"the server's words", "")
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)

    def test_without_a_model_stands_for_the_server_s_own(self, rig: LendingRig) -> None:
        order(rig, {"messages": []})
        assert [job.model for job in rig.host.ledger.jobs()] == [None]

    def test_without_a_body_is_judged_all_the_same(self, rig: LendingRig) -> None:
        got = answer(rig.port.connect(request(token=BORROW)).got())
        assert (got.status, got.reason) == (400, "bad_request")

    def test_a_chunked_body_is_judged_and_goes_on_with_its_length(self, rig: LendingRig) -> None:
        raw = b'{"model":"m"}'
        headers = {"transfer-encoding": "chunked", "content-type": "application/json"}
        client = rig.port.connect(request(token=BORROW, headers=headers) + b"5\r\n" + raw[:5] + b"\r\n")
        assert not rig.host.requests
        client.send(b"%x\r\n" % len(raw[5:]) + raw[5:] + b"\r\n0\r\n\r\n")
        assert [job.model for job in rig.host.ledger.jobs()] == ["m"]
        got = rig.port.link().got()
        assert b"content-length: 13\r\n" in got
        assert b"chunked" not in got
        assert got.endswith(raw)


class TestStreams:
    def test_a_stream_is_over_with_its_marker(self, rig: LendingRig) -> None:
        client = order(rig, STREAM)
        server = rig.port.link()
        server.send(STREAM_HEAD + WORD)
        assert client.got() == STREAM_HEAD + WORD
        server.send(DONE + LAST)
        assert client.got() == DONE + LAST
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)
        assert outcomes(rig) == {Outcome.COMPLETED: 1}

    def test_a_marker_in_pieces_counts(self, rig: LendingRig) -> None:
        order(rig, STREAM)
        raw = STREAM_HEAD + WORD + DONE + LAST
        for at in range(len(raw)):
            rig.port.link().send(raw[at : at + 1])
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)

    def test_a_clean_end_without_the_marker_is_held_and_no_success(self, rig: LendingRig) -> None:
        client = order(rig, STREAM)
        rig.port.link().send(STREAM_HEAD + WORD + LAST)
        assert client.got() == STREAM_HEAD + WORD + LAST
        assert held(rig) == ["the stream ended without its end marker"]
        assert outcomes(rig) == {Outcome.FAILED: 1}
        assert rig.nudges == 1

    def test_the_marker_alone_is_not_enough(self, rig: LendingRig) -> None:
        order(rig, STREAM)
        rig.port.link().send(STREAM_HEAD + WORD + DONE)
        rig.port.link().break_off()
        assert len(held(rig)) == 1
        assert outcomes(rig) == {Outcome.FAILED: 1}

    def test_a_plain_reply_needs_no_marker(self, rig: LendingRig) -> None:
        order(rig, STREAM)
        rig.port.link().send(reply({"not": "a stream"}))
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)

    def test_a_stream_on_a_route_without_a_known_marker_proves_nothing(self, rig: LendingRig) -> None:
        order(rig, {"model": "m", "input": "x"}, "/v1/embeddings")
        rig.port.link().send(STREAM_HEAD + DONE + LAST)
        assert len(held(rig)) == 1


class TestEndsThatProveNothing:
    """Wherever it is cut: the upstream's connection is closed in the same turn, and the job is held once."""

    CUTS: ClassVar = {
        "before the head": b"",
        "in the head": STREAM_HEAD[:20],
        "after the head": STREAM_HEAD,
        "in a chunk": STREAM_HEAD + WORD[:9],
        "between chunks": STREAM_HEAD + WORD,
        "after the marker": STREAM_HEAD + WORD + DONE,
    }

    @pytest.fixture(params=CUTS)
    def cut(self, rig: LendingRig, request: pytest.FixtureRequest) -> tuple[LendingRig, Client]:
        client = order(rig, STREAM)
        if said := self.CUTS[request.param]:
            rig.port.link().send(said)
        return rig, client

    @pytest.mark.parametrize("how", ["fin", "reset"])
    def test_a_client_that_leaves(self, cut: tuple[LendingRig, Client], how: str) -> None:
        rig, client = cut
        if how == "fin":
            client.hang_up()
        else:
            client.break_off(ConnectionResetError())
        assert rig.port.link().transport.aborted
        assert held(rig) == ["the borrower left before the reply was complete"]
        assert outcomes(rig) == {Outcome.CLIENT_CLOSED: 1}
        assert rig.host.used["ci"].requests == 1

    def test_an_upstream_that_dies(self, cut: tuple[LendingRig, Client]) -> None:
        rig, client = cut
        began = bool(client.got())
        rig.port.link().break_off()
        if began:
            assert client.transport.aborted
        else:
            assert (got := answer(client.got())).status == 502
            assert got.reason == "upstream_invalid"
            assert int(got.headers["retry-after"]) >= 1
        assert held(rig) == ["the upstream closed the connection before its reply was complete"]
        assert outcomes(rig) == {Outcome.FAILED: 1}

    def test_an_upstream_that_answers_what_cannot_be_read(self, rig: LendingRig) -> None:
        client = order(rig, STREAM)
        rig.port.link().send(b"ICY 200 OK\r\n\r\n")
        assert answer(client.got()).reason == "upstream_invalid"
        assert held(rig) == ["the upstream's reply could not be read"]

    def test_a_chunk_that_cannot_be_read(self, rig: LendingRig) -> None:
        client = order(rig, STREAM)
        rig.port.link().send(STREAM_HEAD)
        rig.port.link().send(b"zz\r\n")
        assert client.transport.aborted
        assert held(rig) == ["the upstream's reply could not be read"]

    def test_an_upstream_that_does_not_answer_in_time(self, rig: LendingRig) -> None:
        rig.port.upstream.limits = UpstreamLimits(response_head_s=5.0)
        client = order(rig)
        rig.advance(6)
        got = answer(client.got())
        assert (got.status, got.reason) == (504, "upstream_timeout")
        assert held(rig) == ["the upstream did not answer in time"]

    def test_a_client_that_reads_no_more(self, rig: LendingRig) -> None:
        client = order(rig, STREAM)
        client.transport.clogged = True
        rig.port.link().send(STREAM_HEAD + WORD * 2000)
        rig.advance(70)
        assert held(rig) == ["the borrower stopped reading the reply"]
        assert outcomes(rig) == {Outcome.CLIENT_CLOSED: 1}
        assert rig.port.link().transport.aborted


class TestWhatNeverBecameWork:
    def test_an_unreachable_server_holds_nothing_and_is_no_use(self, rig: LendingRig) -> None:
        rig.port.upstream.connects = False
        got = refused(rig)
        assert (got.status, got.reason) == (503, "upstream_unavailable")
        assert int(got.headers["retry-after"]) >= 1
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)
        assert not rig.host.used
        assert outcomes(rig) == {Outcome.FAILED: 1}

    def test_nor_one_that_does_not_accept_in_time(self, rig: LendingRig) -> None:
        rig.port.upstream.waits = True
        client = order(rig)
        rig.advance(6)
        assert answer(client.got()).reason == "upstream_unavailable"
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)
        assert not rig.host.used

    def test_nor_a_client_that_leaves_before_the_connection_is_made(self, rig: LendingRig) -> None:
        rig.port.upstream.waits = True
        order(rig).hang_up()
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)
        assert not rig.host.used
        assert outcomes(rig) == {Outcome.CLIENT_CLOSED: 1}

    def test_a_second_try_that_finds_nobody_may_still_have_started_work(self, rig: LendingRig) -> None:
        client = order(rig)
        rig.port.link().send(reply())
        rig.samples.take()
        rig.port.upstream.connects = False
        client.got()
        client.send(request(body=BODY, token=BORROW))
        rig.port.link(0).break_off()
        assert answer(client.got()).status == 502
        assert len(held(rig)) == 1


class TestGate:
    def test_a_refusal_has_the_gate_s_reason_and_hint(self, rig: LendingRig) -> None:
        rig.presence(Evidence.PRESENT)
        got = refused(rig)
        assert (got.status, got.reason, got.headers["retry-after"]) == (503, "owner_active", "120")
        assert got.headers["x-should-retry"] == "false"
        assert got.error["detail"] == {"cause": "veto"}
        assert rig.port.app.counters.refused == {Reason.OWNER_ACTIVE: 1}
        assert rig.port.upstream.links == []

    def test_the_judged_model_is_what_is_charged(self, lending: Callable[..., LendingRig]) -> None:
        rig = lending(one_upstream(footprints={"big": Footprint(MiB(30_000))}))
        got = refused(rig, {"model": "big"})
        assert got.reason == "insufficient_capacity"
        assert (
            got.error["detail"].items() >= {"resource": "ram", "freeMiB": 20_000, "needMiB": 30_000}.items()
        )
        order(rig, {"model": "small"})

    def test_one_run_of_refusals_is_told_once(self, rig: LendingRig) -> None:
        rig.presence(Evidence.PRESENT)
        for _ in range(5):
            refused(rig)
        assert rig.told_of("refuses") == [{"upstream": "up", "reason": "owner_active", "borrower": "ci"}]
        assert rig.port.app.counters.refused[Reason.OWNER_ACTIVE] == 5

    def test_runs_that_follow_each_other_at_once_are_told_once(self, rig: LendingRig) -> None:
        for _ in range(5):
            client = order(rig)
            refused(rig)
            rig.port.link().send(reply())
            client.got()
        assert len(rig.told_of("refuses")) == 1
        order(rig)
        rig.advance(TOLD_FOR)
        rig.observe()
        refused(rig)
        assert len(rig.told_of("refuses")) == 2

    def test_another_reason_or_an_admission_ends_the_run(self, rig: LendingRig) -> None:
        rig.host.board.set_resource_enabled("ram", False)
        refused(rig)
        rig.host.board.set_resource_enabled("ram", True)
        client = order(rig)
        refused(rig)
        refused(rig)
        rig.port.link().send(reply())
        client.got()
        order(rig).hang_up()
        rig.advance(TOLD_FOR)
        rig.observe()
        refused(rig)
        told = [facts["reason"] for facts in rig.told_of("refuses")]
        assert told == ["resource_disabled", "resource_busy", "resource_busy"]

    @pytest.mark.parametrize("leaves", [False, True])
    def test_a_large_body_is_judged_when_its_turn_comes(self, rig: LendingRig, leaves: bool) -> None:
        waiting: list[Callable[[], None]] = []
        rig.host.in_turn = waiting.append
        client = rig.port.connect(request(body={"model": "m", "pad": "x" * EARLY_BODY}, token=BORROW))
        assert not rig.host.requests
        if leaves:
            client.hang_up()
        (judge,) = waiting
        judge()
        assert len(rig.host.requests) == (not leaves)
        assert bool(rig.port.budget.used) == (not leaves)

    @pytest.mark.parametrize("chunked", [False, True])
    def test_a_large_body_is_refused_before_it_is_read(self, rig: LendingRig, chunked: bool) -> None:
        rig.presence(Evidence.PRESENT)
        headers = {"content-type": "application/json"}
        headers |= {"transfer-encoding": "chunked"} if chunked else {"content-length": str(EARLY_BODY + 1)}
        client = rig.port.connect(request(token=BORROW, headers=headers))
        assert answer(client.got()).reason == "owner_active"
        assert rig.port.budget.used == 0

    def test_a_small_one_is_read_first(self, rig: LendingRig) -> None:
        rig.presence(Evidence.PRESENT)
        headers = {"content-type": "application/json", "content-length": str(EARLY_BODY)}
        assert rig.port.connect(request(token=BORROW, headers=headers)).got() == b""


class TestAnUpstreamThatIsConfiguredAway:
    """Its listener ends a moment after it has gone from the configuration."""

    OTHER = host([upstream("new", ("disk",))], [resource("disk", ResourceType.MEMORY)])

    def gone(self, rig: LendingRig) -> None:
        for part in (rig.host.ledger, rig.host.board, rig.reclaim):
            part.reconfigure(self.OTHER)

    @pytest.mark.parametrize("length", [13, EARLY_BODY + 1])
    def test_a_late_order_is_told_so(self, rig: LendingRig, length: int) -> None:
        client = rig.port.connect(request(body={"model": "m"}, token=BORROW)[:-1])
        self.gone(rig)
        if length > EARLY_BODY:
            headers = {"content-length": str(length), "content-type": "application/json"}
            client = rig.port.connect(request(token=BORROW, headers=headers))
        client.send(b"}")
        got = answer(client.got())
        assert (got.status, got.reason) == (503, "lending_disabled")
        assert got.error["detail"] == {"cause": "not_configured"}
        assert rig.port.upstream.links == []

    @pytest.mark.parametrize("proved", [True, False])
    def test_its_last_job_ends_as_any_other(self, rig: LendingRig, proved: bool) -> None:
        client = order(rig)
        (number,) = rig.host.requests
        self.gone(rig)
        if proved:
            rig.port.link().send(reply())
            assert not list(rig.host.ledger.jobs())
        else:
            client.hang_up()
            assert rig.holds.release(number, ReleasedBy.PROOF, "idle")
        assert not rig.journal.partition("up").holds()
        agreement.check_empty(rig.host, rig.journal)
