from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from standins import agreement
from standins.comfyui_standin import graph
from standins.hosts import upstream
from standins.http_text import answer, reply, request
from standins.lending_rig import BORROW, BOTH, one_upstream
from vacancy_agent.core.facts import MiB
from vacancy_agent.core.job import Phase
from vacancy_agent.core.settings import Dialect, Footprint
from vacancy_agent.proxy.cutter import Cutter
from vacancy_agent.proxy.prompts import MOST_IDS, PromptIds, heaviest
from vacancy_agent.store.journal_format import Phase as Written
from vacancy_api.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from standins.http_engine import Client
    from standins.lending_rig import LendingRig
    from vacancy_agent.store.journal_format import HoldRecord

ID = "e186e2ca-b3f5-4bda-be65-4619f2694c33"
OTHER = "9aa6a481-0c2c-41c5-945a-0cd0b047aee9"
FOOTPRINTS = {"small": Footprint(MiB(100)), "large": Footprint(MiB(8000))}


@pytest.fixture
def rig(lending: Callable[..., LendingRig]) -> LendingRig:
    return lending(one_upstream(dialect=Dialect.COMFYUI, slots=4, footprints=MappingProxyType(FOOTPRINTS)))


def submit(rig: LendingRig, token: str = BORROW, **more: Any) -> Client:
    return rig.port.connect(request("/prompt", {"prompt": graph()} | more, token=token))


def forwarded(rig: LendingRig, index: int = -1) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(rig.port.link(index).got().partition(b"\r\n\r\n")[2])
    return body


def landed(rig: LendingRig, prompt_id: str | None = None, status: int = 200) -> None:
    said = {"prompt_id": prompt_id or forwarded(rig)["prompt_id"], "number": 1, "node_errors": {}}
    rig.port.link().send(reply(said, status))


def written(rig: LendingRig) -> HoldRecord:
    (hold,) = rig.journal.partition("up").holds()
    assert hold.record is not None
    return hold.record


class TestASubmission:
    def test_is_in_the_journal_with_its_prompt_before_it_is_forwarded(self, rig: LendingRig) -> None:
        rig.port.upstream.waits = True
        submit(rig, prompt_id=ID)
        assert (written(rig).prompt, written(rig).confirmed) == (ID, False)
        assert written(rig).phase is Written.FORWARDING
        assert not hasattr(rig.port.upstream.links[0], "transport")

    def test_is_tracked_once_it_was_answered(self, rig: LendingRig) -> None:
        client = submit(rig, prompt_id=ID)
        landed(rig, ID)
        assert answer(client.got()).status == 200
        (job,) = rig.host.ledger.jobs()
        assert job.phase is Phase.TRACKING
        assert rig.host.ledger.active("up") == {job.id}
        assert (written(rig).prompt, written(rig).confirmed) == (ID, True)
        assert written(rig).phase is Written.TRACKING
        agreement.check(rig.host, rig.journal, rig.reclaims)

    @pytest.mark.parametrize("status", [400, 404, 413])
    def test_that_the_server_refuses_is_over(self, rig: LendingRig, status: int) -> None:
        submit(rig)
        landed(rig, status=status)
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)

    def test_that_the_server_broke_at_may_run_all_the_same(self, rig: LendingRig) -> None:
        submit(rig)
        rig.port.link().send(reply(b"500 Internal Server Error", 500, "text/plain"))
        (tracked,) = rig.host.tracked.values()
        assert not tracked.prompt.confirmed

    def test_of_which_nothing_was_sent_is_over(self, rig: LendingRig) -> None:
        rig.port.upstream.waits = True
        submit(rig).hang_up()
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)

    def test_whose_client_leaves_before_the_reply_is_held_with_its_prompt(self, rig: LendingRig) -> None:
        submit(rig, prompt_id=ID).hang_up()
        (held,) = rig.host.held_slots.values()
        assert held.prompt is not None
        assert (held.prompt.id, held.prompt.confirmed) == (ID, False)
        assert written(rig).prompt == ID

    def test_whose_client_leaves_after_the_reply_goes_on(self, rig: LendingRig) -> None:
        client = submit(rig)
        landed(rig)
        client.hang_up()
        assert len(rig.host.tracked) == 1

    def test_is_followed_by_the_id_that_the_server_gave_it(self, rig: LendingRig) -> None:
        submit(rig, prompt_id=ID)
        landed(rig, OTHER)  # before 0.3.45
        (tracked,) = rig.host.tracked.values()
        assert tracked.prompt.id == OTHER
        assert written(rig).prompt == OTHER
        assert rig.host.prompt_ids.known(rig.port.app.settings.target, OTHER)

    def test_is_found_again_after_a_kill(self, rig: LendingRig) -> None:
        submit(rig, prompt_id=ID)
        landed(rig, ID)
        again = rig.again()
        (held,) = again.host.held_slots.values()
        assert held.prompt is not None
        assert (held.prompt.id, held.prompt.confirmed) == (ID, True)
        assert again.host.prompt_ids.known(again.port.app.settings.target, ID)
        again.tidy()


class TestItsIds:
    def test_a_borrowers_own_is_kept_the_first_time(self, rig: LendingRig) -> None:
        submit(rig, prompt_id=ID)
        assert forwarded(rig)["prompt_id"] == ID
        landed(rig, ID)
        submit(rig, prompt_id=ID)
        assert forwarded(rig)["prompt_id"] not in {ID, None}
        assert len(rig.host.ledger.active("up")) == 2

    def test_an_id_of_a_refused_submission_was_not_used(self, rig: LendingRig) -> None:
        rig.host.ledger.close("up", Reason.OWNER_ACTIVE)
        assert answer(submit(rig, prompt_id=ID).got()).status == 503
        rig.host.ledger.reopen("up")
        submit(rig, prompt_id=ID)
        assert forwarded(rig)["prompt_id"] == ID

    def test_a_client_id_is_one_borrowers(self, rig: LendingRig) -> None:
        submit(rig, client_id="mine")
        assert forwarded(rig)["client_id"] == "mine"
        got = answer(submit(rig, BOTH, client_id="mine").got())
        assert (got.status, got.reason) == (400, "bad_request")
        assert "random UUID" in got.error["message"]
        got = answer(submit(rig, BOTH, extra_data={"client_id": "mine"}).got())
        assert got.status == 400

    def test_what_jumps_the_queue_is_not_forwarded(self, rig: LendingRig) -> None:
        submit(rig, number=-1e9, front=True)
        assert forwarded(rig).keys() == {"prompt", "prompt_id"}

    def test_where_its_browser_stands_is_not_forwarded(self, rig: LendingRig) -> None:
        headers = {"origin": "http://proxy:1", "sec-fetch-site": "cross-site"}
        rig.port.connect(request("/prompt", {"prompt": graph()}, token=BORROW, headers=headers))
        head = rig.port.link().got().partition(b"\r\n\r\n")[0].lower()
        assert b"origin" not in head
        assert b"sec-fetch" not in head


class TestItsModel:
    @pytest.mark.parametrize(
        ("named", "charged"),
        [
            ((), None),
            (("small",), "small"),
            (("small", "large"), "large"),
            (("large", "small"), "large"),
            (("small", "unlisted"), "unlisted"),
            (("small", None), None),
            (("large", None), "large"),
        ],
    )
    def test_is_the_one_that_needs_most(self, named: tuple[str | None, ...], charged: str | None) -> None:
        settings = upstream("up", ("ram",), default_footprint=Footprint(MiB(500)), footprints=FOOTPRINTS)
        assert heaviest(settings, named) == charged

    def test_is_what_the_gate_is_asked_about(self, rig: LendingRig) -> None:
        rig.samples.free["ram"] = 5000
        rig.samples.take()
        nodes = {"1": {"inputs": {"ckpt_name": "small"}}, "2": {"inputs": {"unet_name": "large"}}}
        got = answer(submit(rig, prompt=nodes).got())
        assert (got.status, got.reason) == (503, "insufficient_capacity")
        submit(rig, prompt={"1": nodes["1"]})
        assert [job.model for job in rig.host.ledger.jobs()] == ["small"]


class TestTakenBack:
    def test_what_is_tracked_is_cancelled_and_what_is_forwarded_is_cut_first(self, rig: LendingRig) -> None:
        asked: list[tuple[str, tuple[int, ...]]] = []
        cutter = Cutter(rig.host, lambda upstream, jobs: asked.append((upstream, jobs)))
        submit(rig)
        landed(rig)
        client = submit(rig)
        first, second = sorted(rig.host.ledger.active("up"))
        cutter.cut(first, Reason.OWNER_ACTIVE)
        cutter.cut(second, Reason.OWNER_ACTIVE)
        assert answer(client.got()).status == 503
        assert asked == [("up", (first,)), ("up", (second,))]
        assert set(rig.host.held_slots) == {second}

    def test_an_upload_is_cut_like_any_work(self, rig: LendingRig) -> None:
        asked: list[object] = []
        cutter = Cutter(rig.host, lambda *told: asked.append(told))
        client = rig.port.connect(request("/upload/image", b"data", token=BORROW))
        (job,) = rig.host.ledger.active("up")
        cutter.cut(job, Reason.OWNER_ACTIVE)
        assert (answer(client.got()).status, asked) == (503, [])


def test_used_ids_are_bounded() -> None:
    ids = PromptIds()
    for number in range(MOST_IDS + 1):
        ids.add("server", str(number))
    assert not ids.known("server", "0")
    assert ids.known("server", "1")
    assert not ids.known("another", "1")
