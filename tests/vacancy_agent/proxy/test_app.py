from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

import pytest

from standins.asking import ask, forwarded
from standins.http_engine import FakeTransport
from standins.http_text import CHAT, head_of, request
from standins.lending_rig import BORROW, BOTH, READ, RELAY, one_upstream
from vacancy_agent.core.facts import Evidence
from vacancy_agent.core.settings import AccessSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from standins.lending_rig import LendingRig

BODY = {"model": "m", "messages": []}


class TestTokens:
    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"authorization": "Bearer nobody"},
            {"authorization": BORROW},
            {"authorization": f"Basic {BORROW}"},
            {"authorization": f"Bearer {READ}"},
            {"x-api-key": READ},
            {"x-api-key": "nobody"},
            {"authorization": f"Bearer {BORROW}", "x-api-key": RELAY},
            {"authorization": f"Bearer {READ}", "x-api-key": BORROW},
        ],
    )
    @pytest.mark.parametrize("path", [CHAT, "/v1/models", "/metrics", "/nowhere"])
    def test_without_a_borrower_s_token_every_route_is_401(
        self, rig: LendingRig, headers: dict[str, str], path: str
    ) -> None:
        got = ask(rig, request(path, BODY, headers=headers))
        assert got is not None
        assert (got.status, got.reason) == (401, "unauthorized")
        assert got.headers["www-authenticate"].startswith("Bearer")
        assert "retry-after" not in got.headers
        assert rig.port.upstream.links == []
        assert rig.host.auth.denied["borrow"] == 1
        assert not rig.host.auth.allowed

    @pytest.mark.parametrize(
        "headers",
        [
            {"authorization": f"Bearer {BORROW}"},
            {"authorization": f"bearer  {BORROW} "},
            {"x-api-key": BORROW},
            {"authorization": f"Bearer {BORROW}", "x-api-key": BORROW},
            {"authorization": f"Bearer {RELAY}"},
            {"authorization": f"Bearer {BOTH}"},
        ],
    )
    def test_a_borrower_is_let_in(self, rig: LendingRig, headers: dict[str, str]) -> None:
        assert forwarded(rig, request(body=BODY, headers=headers))[0] == f"POST {CHAT} HTTP/1.1"
        assert rig.host.auth.allowed["borrow"] == 1

    @pytest.mark.parametrize(
        ("peer", "headers", "status"),
        [
            ("127.0.0.1", {}, None),
            ("127.1.2.3", {}, None),
            ("::1", {}, None),
            ("::1%lo", {}, None),
            ("192.0.2.1", {}, 401),
            ("not an address", {}, 401),
            ("127.0.0.1", {"authorization": "Bearer nobody"}, 401),
            ("127.0.0.1", {"x-api-key": READ}, 401),
        ],
    )
    def test_trusted_loopback_is_whoever_has_no_token_on_this_machine(
        self,
        lending: Callable[..., LendingRig],
        monkeypatch: pytest.MonkeyPatch,
        peer: str,
        headers: dict[str, str],
        status: int | None,
    ) -> None:
        monkeypatch.setattr(
            FakeTransport, "get_extra_info", lambda _self, name: (peer, 1) if name == "peername" else None
        )
        rig = lending(access=AccessSettings(trust_loopback=True))
        got = ask(rig, request(body=BODY, headers=headers | {"host": "127.0.0.1:8471"}))
        assert (got and got.status) == status
        if got is None:
            assert next(iter(rig.host.requests.values())).plan.borrower == "loopback"

    @pytest.mark.parametrize(
        "headers",
        [
            {"origin": "https://evil.example", "content-type": "text/plain"},
            {"origin": "null"},
            {"host": "rebound.example:8471"},
            {"host": "rebound.example:8471", "origin": "http://rebound.example:8471"},
        ],
    )
    def test_a_web_page_in_a_browser_of_this_machine_is_not_trusted_for_its_loopback_address(
        self, lending: Callable[..., LendingRig], monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]
    ) -> None:
        monkeypatch.setattr(
            FakeTransport,
            "get_extra_info",
            lambda _self, name: ("127.0.0.1", 1) if name == "peername" else None,
        )
        rig = lending(access=AccessSettings(trust_loopback=True))
        got = ask(rig, request(body=BODY, headers={"host": "127.0.0.1:8471"} | headers))
        assert got is not None
        assert got.status == 401

    def test_a_peer_without_an_address_is_not_this_machine(
        self, lending: Callable[..., LendingRig], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(FakeTransport, "get_extra_info", lambda _self, _name: None)
        got = ask(lending(access=AccessSettings(trust_loopback=True)), request(body=BODY))
        assert got is not None
        assert got.status == 401

    @pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer nobody"}])
    def test_unauthenticated_remotes_are_let_in_only_where_that_is_written(
        self, lending: Callable[..., LendingRig], headers: dict[str, str]
    ) -> None:
        rig = lending(access=AccessSettings(allow_unauthenticated_remote=True))
        assert ask(rig, request(body=BODY, headers=headers)) is None
        assert next(iter(rig.host.requests.values())).plan.borrower == "anonymous"

    @pytest.mark.parametrize(("token", "borrower"), [(RELAY, "pool/team"), (BORROW, "ci"), (BOTH, "owner")])
    def test_only_the_gateway_says_for_whom_it_asks(self, rig: LendingRig, token: str, borrower: str) -> None:
        assert ask(rig, request(body=BODY, token=token, headers={"x-vacancy-borrower": "pool/team"})) is None
        (job,) = rig.host.ledger.jobs()
        assert job.borrower == borrower
        assert "x-vacancy-borrower" not in head_of(rig.port.link().got())[1]

    def test_the_gateway_s_word_is_shown_as_plain_text(self, rig: LendingRig) -> None:
        ask(rig, request(body=BODY, token=RELAY, headers={"x-vacancy-borrower": "\xe9" * 200}))
        (job,) = rig.host.ledger.jobs()
        assert job.borrower.isascii()
        assert len(job.borrower) <= 123

    def test_a_gateway_that_names_nobody_is_itself(self, rig: LendingRig) -> None:
        ask(rig, request(body=BODY, token=RELAY))
        assert [job.borrower for job in rig.host.ledger.jobs()] == ["gateway"]


class TestClasses:
    """Each class of route, while lending and while the owner is there."""

    @pytest.fixture(params=["lends", "owner", "paused"])
    def anyhow(self, rig: LendingRig, request: pytest.FixtureRequest) -> LendingRig:
        if request.param == "owner":
            rig.presence(Evidence.PRESENT)
        if request.param == "paused":
            from vacancy_agent.core.lending import LocalPause

            rig.host.board.set_local_pause(LocalPause(None))
        return rig

    @pytest.mark.parametrize(
        ("method", "path", "target"),
        [
            ("GET", "/v1/models", "/v1/models"),
            ("HEAD", "/v1/models", "/v1/models"),
            ("GET", "/v1/models?reload=1", "/v1/models"),
            ("GET", "/health", "/health"),
            ("GET", "/v1/./x/../models", "/v1/models"),
        ],
    )
    def test_discovery_and_health_pass_whatever_the_gate_says(
        self, anyhow: LendingRig, method: str, path: str, target: str
    ) -> None:
        assert (
            forwarded(anyhow, request(path, method=method, token=BORROW))[0] == f"{method} {target} HTTP/1.1"
        )
        assert anyhow.port.app.counters.passed == 1
        assert anyhow.port.app.counters.admitted == 0
        assert not anyhow.host.used

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", "/metrics"),
            ("HEAD", "/metrics"),
            ("GET", "/health?full=1"),
            ("POST", "/sleep"),
            ("GET", "/v1/responses/abc"),
            ("GET", "/unheard-of"),
            ("GET", "/v1/%6dodels"),
            ("GET", "/v1/models/"),
            ("GET", "/V1/models"),
            ("GET", CHAT),
        ],
    )
    def test_management_and_unlisted_reads_are_denied_with_the_reads_there_are(
        self, anyhow: LendingRig, method: str, path: str
    ) -> None:
        got = ask(anyhow, request(path, method=method, token=BORROW))
        assert got is not None
        assert (got.status, got.reason) == (403, "management_denied")
        if method != "HEAD":
            assert "GET /v1/models" in got.error["message"]
        assert anyhow.port.upstream.links == []

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("POST", "/invocations"),
            ("POST", "/unheard-of"),
            ("PUT", CHAT),
            ("OPTIONS", CHAT),
            ("DELETE", "/v1/models"),
            ("POST", "/v1/chat/../chat//completions"),
        ],
    )
    @pytest.mark.parametrize("allowed", [False, True])
    def test_what_no_row_names_is_never_forwarded(
        self, lending: Callable[..., LendingRig], method: str, path: str, allowed: bool
    ) -> None:
        rig = lending(one_upstream(management_allowed=allowed))
        got = ask(rig, request(path, BODY, method=method, token=BORROW))
        assert got is not None
        assert (got.status, got.reason) == (501, "unrecognised_route")
        assert "openai" in got.error["message"]
        assert rig.port.upstream.links == []

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", "/metrics"),
            ("POST", "/sleep?level=1"),
            ("GET", "/unheard-of?x=1"),
            ("GET", "/health?full=1"),
        ],
    )
    def test_management_that_is_allowed_passes_whatever_the_gate_says(
        self, lending: Callable[..., LendingRig], method: str, path: str
    ) -> None:
        rig = lending(one_upstream(management_allowed=True))
        rig.presence(Evidence.PRESENT)
        assert forwarded(rig, request(path, method=method, token=BORROW))[0] == f"{method} {path} HTTP/1.1"
        assert rig.port.app.counters.passed == 1

    def test_work_is_gated(self, rig: LendingRig) -> None:
        rig.presence(Evidence.PRESENT)
        got = ask(rig, request(body=BODY, token=BORROW))
        assert got is not None
        assert (got.status, got.reason, got.headers["retry-after"]) == (503, "owner_active", "120")


class TestWhatReachesTheUpstream:
    SECRET: ClassVar = {"authorization": f"Bearer {BORROW}", "x-api-key": BORROW}

    @pytest.mark.parametrize(
        "raw",
        [
            request(body=BODY, headers=SECRET),
            request("/v1/models", method="GET", headers=SECRET),
            request("/metrics", method="GET", headers=SECRET),
            request("/unheard-of", method="GET", headers=SECRET),
        ],
        ids=["work", "pass-through", "management", "unlisted"],
    )
    @pytest.mark.parametrize("credential", [None, "the-server-s-own"])
    def test_never_the_borrower_s_token(
        self, lending: Callable[..., LendingRig], raw: bytes, credential: str | None
    ) -> None:
        rig = lending(one_upstream(management_allowed=True), credential=credential)
        assert ask(rig, raw) is None
        got = rig.port.link().got()
        assert BORROW.encode() not in got
        own = head_of(got)[1].get("authorization")
        assert own == (f"Bearer {credential}" if credential else None)

    def test_its_authorization_where_the_owner_wants_that_but_never_x_api_key(
        self, lending: Callable[..., LendingRig]
    ) -> None:
        rig = lending(one_upstream(forward_authorization=True))
        _, fields, _ = forwarded(rig, request(body=BODY, headers=self.SECRET))
        assert fields["authorization"] == f"Bearer {BORROW}"
        assert "x-api-key" not in fields

    def test_an_authorization_for_the_server_alone_beside_a_token_for_us(
        self, lending: Callable[..., LendingRig]
    ) -> None:
        both = {"authorization": "Bearer the-server-s", "x-api-key": BORROW}
        rig = lending(one_upstream(forward_authorization=True))
        _, fields, _ = forwarded(rig, request(body=BODY, headers=both))
        assert fields["authorization"] == "Bearer the-server-s"
        assert "x-api-key" not in fields
        got = ask(rig, request(body=BODY, headers={**both, "x-api-key": "nobody-s"}))
        assert got is not None
        assert got.status == 401
        got = ask(lending(), request(body=BODY, headers=both))
        assert got is not None
        assert got.status == 401, "where it is not forwarded, both have to be the same"

    def test_an_authorization_for_the_server_alone_from_this_machine(
        self, lending: Callable[..., LendingRig], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            FakeTransport,
            "get_extra_info",
            lambda _self, name: ("127.0.0.1", 1) if name == "peername" else None,
        )
        rig = lending(one_upstream(forward_authorization=True), access=AccessSettings(trust_loopback=True))
        headers = {"authorization": "Bearer the-server-s", "host": "127.0.0.1:8471"}
        _, fields, _ = forwarded(rig, request(body=BODY, headers=headers))
        assert fields["authorization"] == "Bearer the-server-s"

    def test_the_server_s_own_credential_wins(self, lending: Callable[..., LendingRig]) -> None:
        rig = lending(one_upstream(forward_authorization=True), credential="own")
        assert forwarded(rig, request(body=BODY, token=BORROW))[1]["authorization"] == "Bearer own"

    def test_not_the_headers_that_are_between_us_or_that_change_what_runs(self, rig: LendingRig) -> None:
        gone = {
            "x-vacancy-borrower": "me",
            "x-conversation-id": "7",
            "x-amzn-sagemaker-adapter-identifier": "big",
            "x-vllm-priority": "-9",
            "accept-encoding": "gzip",
            "proxy-authorization": "Basic x",
            "te": "trailers",
        }
        kept = {"user-agent": "test", "x-request-id": "1", "accept": "text/event-stream"}
        _, fields, _ = forwarded(rig, request(body=BODY, token=BORROW, headers=gone | kept))
        assert not fields.keys() & gone.keys()
        assert fields.items() >= kept.items()
        assert fields["host"] == "10.0.0.9:8000"

    @pytest.mark.parametrize(("token", "kept"), [(BORROW, False), (BOTH, False), (RELAY, True)])
    def test_a_rank_only_from_the_gateway(self, rig: LendingRig, token: str, kept: bool) -> None:
        raw = b'{"model":"m", "priority" : -5,"messages":[1.50]}'
        _, fields, body = forwarded(rig, request(body=raw, token=token, headers={"x-vllm-priority": "-5"}))
        assert ("x-vllm-priority" in fields) is kept
        assert body == (raw if kept else b'{"model":"m","messages":[1.50]}')
        assert int(fields["content-length"]) == len(body)

    def test_the_body_that_was_judged_byte_for_byte(self, rig: LendingRig) -> None:
        raw = b' {"messages" : [ "\xc3\xa9\\u00e9", 1e2 ],"model":"m" } '
        assert forwarded(rig, request(body=raw, token=BORROW))[2] == raw

    def test_a_query_of_a_json_route_is_dropped(self, rig: LendingRig) -> None:
        assert forwarded(rig, request(f"{CHAT}?beta=true", BODY, token=BORROW))[0] == f"POST {CHAT} HTTP/1.1"

    @pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain; charset=utf-8"])
    def test_a_body_that_was_judged_as_json_goes_on_as_json(self, rig: LendingRig, kind: str) -> None:
        _, fields, body = forwarded(rig, request(body=BODY, token=BORROW, headers={"content-type": kind}))
        assert fields["content-type"] == "application/json"
        assert json.loads(body) == BODY
