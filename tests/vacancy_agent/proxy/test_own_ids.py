"""Stored responses: whoever got an id may read it, nobody else may, and the replies stay as they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from standins import agreement
from standins.http_text import answer, reply, request
from standins.lending_rig import BORROW, BOTH, one_upstream
from vacancy_agent.core.settings import Target
from vacancy_agent.proxy import own_ids
from vacancy_agent.proxy.own_ids import OwnIds
from vacancy_dialects import table_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from standins.lending_rig import LendingRig

ID, PATH = "resp_0123456789abcdef", "/v1/responses"
STREAM = "text/event-stream"


def asked(
    rig: LendingRig, said: bytes | dict[str, Any], kind: str = "application/json", **more: Any
) -> bytes:
    """A response is asked for, and the server says this; what the borrower gets."""
    client = rig.port.connect(request(PATH, {"model": "m", "input": "hi"} | more, token=BORROW))
    rig.port.link().send(reply(said, 200, kind))
    got: bytes = client.got()
    return got


def read(
    rig: LendingRig, name: str = ID, token: str = BORROW, how: str = "GET", tail: str = ""
) -> int | None:
    """The proxy's own status; None: it went to the server."""
    before = len(rig.port.upstream.links)
    got = rig.port.connect(request(f"{PATH}/{name}{tail}", method=how, token=token)).got()
    if got:
        assert len(rig.port.upstream.links) == before
        return answer(got).status
    rig.port.link().send(reply({"id": name}))
    return None


def events(name: str = ID) -> bytes:
    created = {"type": "response.created", "response": {"id": name}}
    done = {"type": "response.completed", "response": {"id": name}}
    parts = [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in (created, done)]
    return "".join(parts).encode()


class TestAStoredResponse:
    def test_is_open_to_whoever_got_its_id(self, rig: LendingRig) -> None:
        assert read(rig) == 403
        got = asked(rig, {"id": ID, "object": "response"})
        assert answer(got).status == 200
        assert read(rig) is None
        assert read(rig, tail="?stream=true") is None
        assert read(rig, how="POST", tail="/cancel") is None
        assert read(rig, name="resp_other") == 403
        assert read(rig, token=BOTH) == 403, "another borrower"
        assert rig.port.app.counters.passed == 3
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)

    def test_of_a_stream_is_too_and_the_stream_proves_its_end_as_ever(self, rig: LendingRig) -> None:
        got = asked(rig, events(), STREAM, stream=True)
        assert got.endswith(events())
        assert read(rig) is None
        agreement.check_empty(rig.host, rig.journal, rig.reclaims)

    @pytest.mark.parametrize("status", [400, 500])
    def test_is_none_where_the_server_refused(self, rig: LendingRig, status: int) -> None:
        rig.port.connect(request(PATH, {"model": "m", "input": "hi"}, token=BORROW))
        rig.port.link().send(reply({"id": ID}, status))
        assert read(rig) == 403

    def test_is_not_open_by_what_a_chat_completion_is_called(self, rig: LendingRig) -> None:
        rig.port.connect(request("/v1/chat/completions", {"model": "m", "messages": []}, token=BORROW))
        rig.port.link().send(reply({"id": ID}))
        assert read(rig) == 403

    def test_is_management_like_any_where_that_is_allowed(self, lending: Callable[..., LendingRig]) -> None:
        assert read(lending(one_upstream(management_allowed=True))) is None


def test_an_id_stays_with_whoever_got_it_first_and_the_oldest_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(own_ids, "MOST", 2)
    here, there = Target("http", "a", 1), Target("http", "b", 1)
    match = table_for("openai").classify("GET", f"{PATH}/{ID}".encode(), None)
    known = OwnIds()
    known.add(here, ID, "ci")
    known.add(here, ID, "thief")
    assert known.opens(here, match, "ci")
    assert not known.opens(here, match, "thief")
    assert not known.opens(there, match, "ci"), "another server"
    known.add(here, "resp_2", "ci")
    known.add(here, "resp_3", "ci")
    assert not known.opens(here, match, "ci")
