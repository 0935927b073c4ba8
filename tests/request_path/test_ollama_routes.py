"""Ollama's routes through the proxy, in driven time: what goes on, in which form, and what does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from standins.asking import forwarded
from standins.http_text import answer, reply, request
from standins.lending_rig import BORROW, one_upstream
from vacancy_agent.core.facts import Evidence
from vacancy_agent.core.settings import Dialect

if TYPE_CHECKING:
    from collections.abc import Callable

    from standins.http_engine import Client
    from standins.http_text import Answer
    from standins.lending_rig import LendingRig

BIG, PIECE = 5 << 20, 1 << 16
FORM = {"content-type": "multipart/form-data; boundary=x"}
UNLOADS = [
    ("/api/generate", {"model": "m", "keep_alive": 0}),
    ("/api/generate", {"model": "m", "prompt": "", "keep_alive": "0s"}),
    ("/api/chat", {"model": "m", "messages": [], "keep_alive": 0.0}),
]


@pytest.fixture
def rig(lending: Callable[..., LendingRig]) -> LendingRig:
    return lending(one_upstream(dialect=Dialect.OLLAMA))


@pytest.fixture
def open_rig(lending: Callable[..., LendingRig]) -> LendingRig:
    return lending(one_upstream(dialect=Dialect.OLLAMA, management_allowed=True))


def ask(path: str, body: object = None, method: str = "POST", **more: Any) -> bytes:
    return request(path, body, method=method, token=BORROW, **more)


def refused(rig: LendingRig, raw: bytes) -> Answer:
    got = rig.port.connect(raw).got()
    assert got, "it went on"
    return answer(got)


def in_pieces(rig: LendingRig, raw: bytes) -> Client:
    """As a socket delivers what is large."""
    client = rig.port.connect(raw[:PIECE])
    for at in range(PIECE, len(raw), PIECE):
        client.send(raw[at : at + PIECE])
    return client


class TestUnloads:
    @pytest.mark.parametrize(("path", "body"), UNLOADS)
    def test_an_unload_is_management(self, rig: LendingRig, path: str, body: object):
        said = refused(rig, ask(path, body))
        assert (said.status, said.reason) == (403, "management_denied")
        assert "unloads the model" in said.error["message"]
        assert rig.port.app.counters.admitted == 0

    @pytest.mark.parametrize(("path", "body"), UNLOADS)
    def test_the_owner_can_allow_it_and_no_gate_is_asked(self, open_rig: LendingRig, path: str, body: object):
        open_rig.presence(Evidence.PRESENT)
        first, _, _ = forwarded(open_rig, ask(path, body))
        assert first == f"POST {path} HTTP/1.1"
        assert (open_rig.port.app.counters.admitted, open_rig.port.app.counters.passed) == (0, 1)
        assert not open_rig.host.requests

    def test_with_a_prompt_it_is_work(self, rig: LendingRig):
        forwarded(rig, ask("/api/generate", {"model": "m", "prompt": "x", "keep_alive": 0}))
        assert rig.port.app.counters.admitted == 1


class TestReadsThatNameAModel:
    def test_show_passes_whatever_the_gate_says_and_its_query_goes(self, rig: LendingRig):
        rig.presence(Evidence.PRESENT)
        body = b'{"model":"Small", "verbose":true}'
        first, _, content = forwarded(rig, ask("/api/show?model=huge", body))
        assert (first, content) == ("POST /api/show HTTP/1.1", body)
        assert (rig.port.app.counters.admitted, rig.port.app.counters.passed) == (0, 1)

    @pytest.mark.parametrize(
        ("raw", "status", "reason"),
        [
            (ask("/api/show", {"model": "m:cloud"}), 403, "cloud_model"),
            (ask("/api/show", {"name": "m:x-cloud"}), 403, "cloud_model"),
            (ask("/api/show", b'{"model":"m","MODEL":"m:cloud"}'), 400, "ambiguous_body"),
            (ask("/api/show", b'{"model":"m"}{"model":"m:cloud"}'), 400, "ambiguous_body"),
            (ask("/api/show", {"model": "m"}, headers={"content-encoding": "zstd"}), 415, "content_encoding"),
            (ask("/api/show", {"model": "m"}, headers={"content-type": "text/html"}), 400, "bad_request"),
            (ask("/v1/models/m:cloud", method="GET"), 403, "cloud_model"),
            (ask("/v1/models/m%3Acloud", method="GET"), 403, "cloud_model"),
            (ask("/v1/models/m:7b-CLOUD", method="GET"), 403, "cloud_model"),
            (ask("/v1/models/m:cloud?x=1", method="GET"), 403, "cloud_model"),
            (ask("/v1/models/m:cloud%20", method="GET"), 403, "management_denied"),
            (ask("/v1/chat/completions", {"model": "m:cloud", "messages": []}), 403, "cloud_model"),
            (ask("/v1/audio/transcriptions?model=huge", b"", headers=FORM), 400, "bad_request"),
        ],
    )
    @pytest.mark.parametrize("management", [False, True])
    def test_what_does_not_go_on(
        self,
        lending: Callable[..., LendingRig],
        raw: bytes,
        status: int,
        reason: str,
        management: bool,
    ):
        rig = lending(one_upstream(dialect=Dialect.OLLAMA, management_allowed=management))
        if management and reason == "management_denied":
            return
        said = refused(rig, raw)
        assert (said.status, said.reason) == (status, reason)
        assert not rig.port.upstream.links

    def test_a_model_of_the_machine_can_be_read(self, rig: LendingRig):
        first, _, _ = forwarded(rig, ask("/v1/models/small:latest?x=1", method="GET"))
        assert first == "GET /v1/models/small:latest HTTP/1.1"

    def test_a_large_one_is_judged_by_the_helper_and_is_no_work(self, rig: LendingRig):
        body = b'{"model":"m","template":"%b"}' % (b"x" * BIG)
        client = in_pieces(rig, ask("/api/show", body))
        assert (client.got(), rig.helper.asked) == (b"", 1)
        rig.helper.answer()
        assert rig.port.link().got().startswith(b"POST /api/show HTTP/1.1\r\n")
        assert rig.port.app.counters.admitted == 0

    def test_a_large_cloud_name_is_refused_too(self, rig: LendingRig):
        client = in_pieces(rig, ask("/api/show", b'{"template":"%b","name":"m:cloud"}' % (b"x" * BIG)))
        rig.helper.answer()
        assert answer(client.got()).reason == "cloud_model"


class TestWork:
    def test_only_the_bound_of_keep_alive_changes_and_a_query_goes(self, rig: LendingRig):
        body = b'{ "model":"m","prompt":"x", "keep_alive": -1 }'
        first, headers, content = forwarded(rig, ask("/api/generate?model=huge", body))
        assert first == "POST /api/generate HTTP/1.1"
        assert content == body.replace(b"-1", b"1800")
        assert headers["content-length"] == str(len(content))

    def test_the_job_has_the_one_name_of_its_model(self, rig: LendingRig):
        client = rig.port.connect(ask("/api/chat", {"model": "Library/M", "messages": [{}]}))
        assert client.got() == b""
        assert [job.model for job in rig.host.ledger.jobs()] == ["m:latest"]

    def test_a_stream_of_lines_ends_with_its_last_line(self, rig: LendingRig):
        for last, held in ((b'{"done":true}\n', 0), (b'{"error":"the runner died"}\n', 1)):
            rig.port.connect(ask("/api/chat", {"model": "m", "messages": [{}]}))
            rig.port.link().send(reply(b'{"done":false}\n' + last, kind="application/x-ndjson"))
            assert len(rig.told_of("held")) == held

    def test_the_host_is_the_upstreams_own(self, rig: LendingRig):
        _, headers, _ = forwarded(
            rig, ask("/api/tags", method="GET", headers={"host": "lender.example:8471"})
        )
        assert headers["host"] != "lender.example:8471"
