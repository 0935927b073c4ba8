from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins import agreement
from standins.http_text import LAST, STREAM_HEAD, WORD, answer, request
from standins.lending_rig import BORROW, one_upstream
from vacancy_agent.core.board import Pressure, PressureView
from vacancy_agent.core.facts import Evidence, Seconds, WallTime
from vacancy_agent.core.job import JobId
from vacancy_agent.core.lending import LocalPause
from vacancy_agent.core.settings import OnOwnerReturn, OwnerScope
from vacancy_agent.proxy.counters import Outcome
from vacancy_agent.proxy.cutter import HINTS, Cutter
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from standins.http_engine import Client
    from standins.lending_rig import LendingRig

STREAM = {"model": "m", "stream": True}


@pytest.fixture
def rig(lending: Callable[..., LendingRig]) -> LendingRig:
    return lending(one_upstream(slots=3, on_owner_return=OnOwnerReturn.CANCEL))


def job(rig: LendingRig) -> tuple[Client, JobId]:
    client = rig.port.connect(request(body=STREAM, token=BORROW))
    return client, max(rig.host.requests)


@pytest.mark.parametrize("reason", list(HINTS))
def test_before_the_head_the_borrower_is_told_why(rig: LendingRig, reason: Reason) -> None:
    client, number = job(rig)
    Cutter(rig.host).cut(number, reason)
    got = answer(client.got())
    assert (got.status, got.reason) == (503, reason.value)
    assert got.headers["retry-after"] == str(HINTS[reason])
    assert got.error["detail"] == {"cause": "taken_back"}
    assert rig.port.link().transport.aborted
    agreement.check(rig.host, rig.journal, rig.reclaims)


@pytest.mark.parametrize(
    ("unknown_for", "detail"),
    [
        (None, {"cause": "taken_back"}),
        (21.4, {"cause": "taken_back", "resource": "ram", "unknownSeconds": 21}),
    ],
)
def test_a_load_that_could_not_be_read_is_told_with_its_length(
    rig: LendingRig, unknown_for: float | None, detail: dict[str, object]
) -> None:
    gone = None if unknown_for is None else Seconds(unknown_for)
    client, number = job(rig)
    rig.host.board.set_pressure("ram", Pressure.UNKNOWN, PressureView("unknown", unknown_for=gone))
    Cutter(rig.host).cut(number, Reason.RESOURCE_PRESSURED)
    assert answer(client.got()).error["detail"] == detail


def test_a_pause_is_told_with_its_end(rig: LendingRig) -> None:
    client, number = job(rig)
    rig.host.board.set_local_pause(LocalPause(WallTime(rig.clock.wall() + 60)))
    Cutter(rig.host).cut(number, Reason.LENDING_DISABLED)
    got = answer(client.got())
    assert (got.headers["retry-after"], got.error["detail"]["by"]) == ("60", "local")
    assert got.error["detail"]["cause"] == "taken_back"
    assert "paused on this host" in got.error["message"]


def test_and_its_connection_goes_on(rig: LendingRig) -> None:
    client, number = job(rig)
    Cutter(rig.host).cut(number, Reason.OWNER_ACTIVE)
    client.got()
    client.send(request("/v1/models", method="GET", token=BORROW))
    assert rig.port.link().got().startswith(b"GET /v1/models ")


@pytest.mark.parametrize("said", [STREAM_HEAD, STREAM_HEAD + WORD])
def test_after_the_head_the_stream_breaks_off_and_never_looks_finished(rig: LendingRig, said: bytes) -> None:
    client, number = job(rig)
    rig.port.link().send(said)
    client.got()
    Cutter(rig.host).cut(number, Reason.OWNER_ACTIVE)
    assert client.transport.aborted
    assert LAST not in client.got()
    assert rig.port.link().transport.aborted


def test_the_job_is_held_and_counted_as_taken_back(rig: LendingRig) -> None:
    _, number = job(rig)
    Cutter(rig.host).cut(number, Reason.OWNER_ACTIVE)
    (held,) = rig.host.ledger.holds()
    assert held.why == "this host took it back before its reply was complete"
    assert rig.port.app.counters.outcomes[Outcome.CANCELLED] == 1
    assert rig.nudges == 1


def test_of_a_connection_that_is_not_made_yet_nothing_is_held(rig: LendingRig) -> None:
    rig.port.upstream.waits = True
    client, number = job(rig)
    Cutter(rig.host).cut(number, Reason.OWNER_ACTIVE)
    assert answer(client.got()).status == 503
    agreement.check_empty(rig.host, rig.journal, rig.reclaims)


def test_a_job_that_has_ended_or_never_was_is_left_alone(rig: LendingRig) -> None:
    client, number = job(rig)
    client.hang_up()
    Cutter(rig.host).cut(number, Reason.OWNER_ACTIVE)
    Cutter(rig.host).cut(JobId(4711), Reason.OWNER_ACTIVE)
    assert rig.port.app.counters.outcomes[Outcome.CANCELLED] == 0


class TestTheOwnersReturn:
    """From the presence sample to the cut, in one call."""

    def test_every_borrower_is_cut_within_the_call_that_brings_the_sample(self, rig: LendingRig) -> None:
        clients = [job(rig)[0] for _ in range(3)]
        rig.port.link(0).send(STREAM_HEAD)
        rig.presence(Evidence.PRESENT)
        assert all(rig.port.link(index).transport.aborted for index in range(3))
        assert clients[0].transport.aborted
        assert [answer(client.got()).reason for client in clients[1:]] == ["owner_active"] * 2
        assert len(list(rig.host.ledger.holds())) == 3
        agreement.check(rig.host, rig.journal, rig.reclaims)

    def test_the_gate_is_shut_before_the_cut(self, rig: LendingRig) -> None:
        client, _ = job(rig)
        client.send(
            request(body=STREAM, token=BORROW)
        )  # the next one, sent ahead: its turn comes with the cut
        rig.presence(Evidence.PRESENT)
        assert client.got().count(b"x-vacancy-reason: owner_active") == 2
        assert rig.port.app.counters.admitted == 1

    def test_discovery_is_not_work_and_goes_on(self, rig: LendingRig) -> None:
        client = rig.port.connect(request("/v1/models", method="GET", token=BORROW))
        rig.presence(Evidence.PRESENT)
        assert not rig.port.link().transport.aborted
        assert client.got() == b""

    def test_a_resource_scoped_upstream_is_not_touched(self, lending: Callable[..., LendingRig]) -> None:
        rig = lending(one_upstream(owner_scope=OwnerScope.RESOURCE, on_owner_return=OnOwnerReturn.CANCEL))
        job(rig)
        rig.presence(Evidence.PRESENT)
        assert len(rig.host.requests) == 1
        assert not rig.port.link().transport.aborted


def test_a_listener_that_ends_takes_its_jobs_back_too(rig: LendingRig) -> None:
    client, _ = job(rig)
    rig.port.link().send(STREAM_HEAD)
    rig.reconfigure(one_upstream(slots=1))
    assert not client.transport.aborted
    rig.end_listeners()
    assert client.transport.aborted
    (held,) = rig.host.ledger.holds()
    assert "owner" not in held.why
    agreement.check(rig.host, rig.journal, rig.reclaims)
