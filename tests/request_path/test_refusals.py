"""What a borrower is refused, and the one reply that is rewritten, in driven time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from standins.asking import ask
from standins.http_text import LAST, answer, chunk, reply, request
from standins.lending_rig import BORROW, one_upstream
from vacancy_agent.core.settings import Dialect
from vacancy_api.reasons import Reason
from vacancy_dialects import MAX_REWRITTEN
from vacancy_http import ListenerLimits
from vacancy_http.exchange import MAX_WHOLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from standins.http_text import Answer
    from standins.lending_rig import LendingRig

BODY = {"model": "m", "messages": []}


class TestRefusals:
    """The one shape of every answer that is ours."""

    @pytest.mark.parametrize(
        ("raw", "status", "reason"),
        [
            (request(body=BODY), 401, "unauthorized"),
            (request("/metrics", method="GET", token=BORROW), 403, "management_denied"),
            (request("/nowhere", BODY, token=BORROW), 501, "unrecognised_route"),
            (request(body=b"[1]", token=BORROW), 400, "bad_request"),
            (request(body=b'{"model":"a","MODEL":"b"}', token=BORROW), 400, "ambiguous_body"),
            (request("/v1/responses", {"background": True}, token=BORROW), 400, "background_refused"),
            (request(body=BODY, token=BORROW, headers={"content-encoding": "gzip"}), 415, "content_encoding"),
            (request(body=BODY, token=BORROW, headers={"content-type": "text/html"}), 400, "bad_request"),
            (request("/v1/images/edits?m=1", BODY, token=BORROW), 400, "bad_request"),
            (request(body=b"{" + b" " * 999 + b"}", token=BORROW), 413, "body_too_large"),
            (b"GET /v1/models HTTP/1.1\r\n\r\n", 400, "bad_request"),
        ],
        ids=lambda value: value if isinstance(value, str) else None,
    )
    def test_shape(self, lending: Callable[..., LendingRig], raw: bytes, status: int, reason: str) -> None:
        rig = lending(limits=ListenerLimits(max_body_bytes=500))
        got = ask(rig, raw)
        assert got is not None
        assert (got.status, got.reason) == (status, reason)
        error: dict[str, Any] = got.error
        assert error.keys() == {"message", "type", "code", "param", "detail"}
        assert (error["type"], error["code"], error["param"]) == ("no_vacancy", reason, None)
        assert len(error["message"]) > 20
        assert got.headers["content-type"] == "application/json"
        assert got.headers["x-should-retry"] == "false"
        assert rig.port.app.counters.refused == {Reason(reason): 1}
        assert rig.port.upstream.links == []
        assert not rig.host.requests

    def test_a_body_without_room_is_told_to_come_back(self, lending: Callable[..., LendingRig]) -> None:
        rig = lending(budget=10)
        got = ask(rig, request(body=BODY, token=BORROW))
        assert got is not None
        assert (got.status, got.reason, got.headers["retry-after"]) == (503, "buffer_budget", "2")
        assert "x-should-retry" not in got.headers
        assert rig.port.budget.used == 0

    def test_a_body_that_does_not_come_is_408(self, rig: LendingRig) -> None:
        client = rig.port.connect(request(body=BODY, token=BORROW)[:-5])
        rig.advance(30)
        got = answer(client.got())
        assert (got.status, got.reason) == (408, "request_timeout")
        assert rig.port.budget.used == 0

    def test_a_connection_goes_on_after_a_refusal(self, rig: LendingRig) -> None:
        client = rig.port.connect(request("/metrics", method="GET", token=BORROW))
        assert answer(client.got()).status == 403
        client.send(request(body=BODY, token=BORROW))
        rig.port.link().send(reply())
        assert answer(client.got()).status == 200


class TestModelListOfALlamaServer:
    """In router mode it shows the owner's command line."""

    LIST: ClassVar[dict[str, Any]] = {
        "object": "list",
        "data": [{"id": "m", "status": {"value": "loaded", "args": ["--api-key", "secret"], "preset": "p"}}],
    }
    CLEAN: ClassVar[dict[str, Any]] = {"object": "list", "data": [{"id": "m", "status": {"value": "loaded"}}]}

    @pytest.fixture
    def rig(self, lending: Callable[..., LendingRig]) -> LendingRig:
        return lending(one_upstream(dialect=Dialect.LLAMACPP))

    def models(self, rig: LendingRig, *pieces: bytes, method: str = "GET") -> Answer:
        client = rig.port.connect(request("/v1/models", method=method, token=BORROW))
        server = rig.port.link()
        for piece in pieces[:-1]:
            server.send(piece)
            assert client.got() == b""
        server.send(pieces[-1])
        return answer(client.got())

    @pytest.mark.parametrize("size", [7, 10_000])
    def test_the_command_line_is_taken_out(self, rig: LendingRig, size: int) -> None:
        raw = reply(self.LIST, server="llama.cpp")
        got = self.models(rig, *(raw[at : at + size] for at in range(0, len(raw), size)))
        assert (got.status, got.headers["server"]) == (200, "llama.cpp")
        assert json.loads(got.body) == self.CLEAN
        assert got.whole
        assert rig.port.upstream.idle_count == 1

    def test_also_of_a_chunked_list(self, rig: LendingRig) -> None:
        raw = json.dumps(self.LIST).encode()
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        got = self.models(rig, head, chunk(raw[:30]), chunk(raw[30:]), LAST)
        assert json.loads(got.body) == self.CLEAN
        assert "transfer-encoding" not in got.headers

    def test_a_list_without_one_passes_byte_for_byte(self, rig: LendingRig) -> None:
        raw = b'{ "data" : [ {"id":"m", "n": 1.50} ] }'
        assert self.models(rig, reply(raw)).body == raw

    def test_an_error_passes_as_it_is(self, rig: LendingRig) -> None:
        got = self.models(rig, reply(b"Loading model", 503, "text/plain"))
        assert (got.status, got.body, got.reason) == (503, b"Loading model", "")

    @pytest.mark.parametrize(
        "pieces",
        [
            (reply(b"no list"),),
            (reply(b"[" + b"1," * (1 << 20)),),
            (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", *[chunk(b" " * (1 << 17))] * 9),
        ],
        ids=["no JSON", "too long", "endless"],
    )
    def test_what_cannot_be_read_is_not_passed_on(self, rig: LendingRig, pieces: tuple[bytes, ...]) -> None:
        got = self.models(rig, *pieces)
        assert (got.status, got.reason) == (502, "upstream_invalid")
        assert rig.port.app.counters.refused[Reason.UPSTREAM_INVALID] == 1

    def test_a_list_that_breaks_off_is_an_error_and_no_half_list(self, rig: LendingRig) -> None:
        client = rig.port.connect(request("/models", method="GET", token=BORROW))
        rig.port.link().send(reply(self.LIST)[:-9])
        rig.port.link().hang_up()
        assert answer(client.got()).status == 502

    def test_a_client_that_leaves_takes_it_along(self, rig: LendingRig) -> None:
        client = rig.port.connect(request("/models", method="GET", token=BORROW))
        rig.port.link().send(reply(self.LIST)[:-9])
        client.hang_up()
        assert rig.port.link().transport.aborted

    def test_the_engine_reads_as_much_as_the_dialect_says(self) -> None:
        assert MAX_WHOLE == MAX_REWRITTEN

    def test_head_shows_nothing_of_it(self, rig: LendingRig) -> None:
        client = rig.port.connect(request("/models", method="HEAD", token=BORROW))
        rig.port.link().send(reply(self.LIST).partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
        assert client.got().startswith(b"HTTP/1.1 200")

    def test_a_list_of_another_dialect_passes(self, lending: Callable[..., LendingRig]) -> None:
        assert json.loads(self.models(lending(), reply(self.LIST)).body) == self.LIST
