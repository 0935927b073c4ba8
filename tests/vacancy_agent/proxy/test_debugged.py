"""What a debug window tells of a request, and that nothing is left of it afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from standins.http_text import request
from standins.lending_rig import BORROW
from vacancy_agent.core.facts import Evidence
from vacancy_agent.proxy.app import GatedProxy
from vacancy_agent.proxy.debugged import watch

if TYPE_CHECKING:
    from standins.lending_rig import LendingRig

SECRETS = ("the-borrow", "Bearer", "top-secret", "?key=")


def asked(rig: LendingRig, **more: object) -> None:
    rig.port.connect(request(body={"model": "m", "prompt": "top-secret"}, token=BORROW, **more))  # type: ignore[arg-type]
    rig.loop.settle()


def test_a_request_is_told_at_its_end_with_what_became_of_it(rig: LendingRig) -> None:
    client = rig.port.connect()  # was open before the window
    watch(rig.port.app, on=True)
    client.send(request(body={"model": "m", "prompt": "top-secret"}, token=BORROW))
    rig.loop.settle()
    rig.port.link().send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
    rig.loop.settle()
    (told,) = rig.told_of("debug request")
    assert told["status"] == 200
    assert (told["ending"], told["upstream"], told["model"]) == ("complete", "up", "m")
    assert told["method"] == "POST"
    assert told["borrower"] is not None
    assert not any(secret in repr(rig.told) for secret in SECRETS)


def test_a_refusal_is_told_with_its_reason_each_time(rig: LendingRig) -> None:
    rig.presence(Evidence.PRESENT)
    watch(rig.port.app, on=True)
    for _ in range(3):
        asked(rig)
    assert [facts["reason"] for facts in rig.told_of("debug refused")] == ["owner_active"] * 3
    assert [facts["status"] for facts in rig.told_of("debug request")] == [503] * 3
    assert rig.port.app.counters.refused.total() == 3


def test_after_the_window_nothing_is_told_and_nothing_is_different(rig: LendingRig) -> None:
    before = dict(vars(rig.port.app))
    watch(rig.port.app, on=True)
    watch(rig.port.app, on=False)
    assert type(rig.port.app) is GatedProxy
    assert vars(rig.port.app) == before
    rig.presence(Evidence.PRESENT)
    asked(rig)
    assert rig.told_of("debug refused") == []
