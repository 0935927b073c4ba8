"""What an application may do, and what the engine asks of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.http_engine import GET, OK, CountedBudget, NotingApp, Rig
from vacancy_http import Ending, Reply

if TYPE_CHECKING:
    from vacancy_http import Application, BodyBudget, ResponseHead

BUSY = Reply(503, ((b"retry-after", b"5"),), b"busy")
STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def test_the_stand_ins_have_the_faces_that_the_engine_asks_for() -> None:
    rig = Rig()
    app: Application = rig.app
    budget: BodyBudget = app.budget
    assert isinstance(app, NotingApp)
    assert isinstance(budget, CountedBudget)


def test_the_engine_names_all_that_an_application_needs() -> None:
    import vacancy_http

    for name in vacancy_http.__all__:
        assert getattr(vacancy_http, name) is not None


def test_an_application_may_edit_the_heads_fields() -> None:
    rig = Rig()
    rig.app.on_response = lambda _x, head: head.headers.append((b"x-from", b"app"))
    client = rig.connect(GET)
    rig.link().send(OK)
    assert b"x-from: app\r\n" in client.got()
    assert rig.app.heads[0].content_length == 2
    assert (b"content-length", b"2") not in rig.app.heads[0].headers


class TestWhole:
    """A reply that the application gets as a whole and answers itself."""

    def rig(self) -> tuple[Rig, list[tuple[int, bytes]]]:
        rig = Rig()
        got: list[tuple[int, bytes]] = []

        def answer(head: ResponseHead, body: bytes) -> Reply:
            got.append((head.status, body))
            return Reply(head.status, ((b"x-own", b"1"),), body.upper())

        rig.app.on_head = lambda x: x.forward(
            rig.upstream,
            target=b"/",
            drop=frozenset(),
            add=(),
            body=None,
            whole=answer,
        )
        return rig, got

    def test_is_given_when_it_is_complete(self) -> None:
        rig, got = self.rig()
        client = rig.connect(GET)
        rig.link().send(STREAM + b"2\r\nab\r\n")
        assert client.got() == b""
        rig.link().send(b"1\r\nc\r\n0\r\n\r\n")
        assert got == [(200, b"abc")]
        assert client.got() == b"HTTP/1.1 200 OK\r\nx-own: 1\r\ncontent-length: 3\r\n\r\nABC"
        assert rig.app.endings == [Ending.COMPLETE]
        assert rig.upstream.idle_count == 1

    @pytest.mark.parametrize("framing", [b"content-length: 1048577", b"transfer-encoding: chunked"])
    def test_has_a_bound(self, framing: bytes) -> None:
        rig, got = self.rig()
        client = rig.connect(GET)
        body = b"x" * 1048577
        if b"chunked" in framing:
            body = b"100001\r\n" + body
        rig.link().send(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n\r\n" + body)
        assert got == []
        assert client.got().startswith(b"HTTP/1.1 502 ")
        assert rig.app.endings == [Ending.UPSTREAM_INVALID]

    def test_that_is_cut_is_an_error_the_client_can_read(self) -> None:
        rig, got = self.rig()
        client = rig.connect(GET)
        rig.link().send(OK[:-1])
        rig.link().hang_up()
        assert got == []
        assert client.got().startswith(b"HTTP/1.1 502 ")
        assert rig.app.endings == [Ending.UPSTREAM_DIED]

    def test_can_be_cancelled_before_it_is_complete(self) -> None:
        rig, _ = self.rig()
        client = rig.connect(GET)
        rig.link().send(OK[:-1])
        rig.app.seen[0].cancel(BUSY)
        assert rig.link().transport.aborted
        assert client.got().startswith(b"HTTP/1.1 503 ")
