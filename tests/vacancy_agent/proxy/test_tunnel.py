"""Which handshakes become tunnels, which of them are work, and what their ends leave, in driven time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from standins.http_engine import FakeTransport
from standins.http_text import CHAT, answer, head_of, request
from standins.lending_rig import BORROW, READ, RELAY, one_upstream
from standins.websocket_text import agreed, handshake
from vacancy_agent.core.facts import Evidence
from vacancy_agent.core.job import Phase
from vacancy_agent.core.settings import AccessSettings, Dialect, OnOwnerReturn, ResourceType
from vacancy_agent.proxy.counters import Outcome
from vacancy_api.reasons import Reason
from vacancy_dialects import WEBSOCKET, QueryRule, Route, RouteClass, RouteTable
from vacancy_http import ListenerLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from standins.http_engine import Client
    from standins.http_text import Answer
    from standins.lending_rig import LendingRig

TABLE = RouteTable(
    "test",
    (
        Route(methods=("GET",), path="/plain", cls=RouteClass.PASS_THROUGH),
        Route(methods=("POST",), path=CHAT, cls=RouteClass.WORK),
        Route(
            methods=(WEBSOCKET,),
            path="/ws",
            cls=RouteClass.PASS_THROUGH,
            strip_headers=frozenset({b"origin", b"sec-fetch-site"}),
        ),
        Route(methods=(WEBSOCKET,), path="/logs", cls=RouteClass.MANAGEMENT),
        Route(methods=(WEBSOCKET,), path="/v1/realtime", cls=RouteClass.WORK, query=QueryRule.REFUSE),
        Route(methods=(WEBSOCKET,), path="/gated", cls=RouteClass.WORK),
    ),
)
WORK = b"/v1/realtime"
BEARER = b"Bearer " + BORROW.encode()


def make(lending: Callable[..., LendingRig], *args: Any, **more: Any) -> LendingRig:
    rig = lending(*args, **more)
    rig.port.app.table = TABLE
    return rig


@pytest.fixture
def rig(lending: Callable[..., LendingRig]) -> LendingRig:
    return make(lending)


def connect(rig: LendingRig, path: bytes = b"/ws", **changes: bytes | None) -> Client:
    return rig.port.connect(handshake(path, **({"authorization": BEARER} | changes)))


def refused(rig: LendingRig, path: bytes = b"/ws", **changes: bytes | None) -> Answer:
    links = len(rig.port.upstream.links)
    got = answer(connect(rig, path, **changes).got())
    assert len(rig.port.upstream.links) == links
    assert got.error["code"] == got.reason
    return got


def opened(rig: LendingRig, path: bytes = b"/ws", **changes: bytes | None) -> Client:
    client = connect(rig, path, **changes)
    assert client.got() == b""
    rig.port.link().got()
    rig.port.link().send(agreed())
    assert client.got().startswith(b"HTTP/1.1 101 ")
    return client


class TestClasses:
    def test_a_handshake_meets_the_rows_of_websockets_alone(self, rig: LendingRig) -> None:
        for path in (b"/plain", CHAT.encode(), b"/nowhere", b"/ws/", b"//ws", b"/x/%2e%2e/ws%2f"):
            got = refused(rig, path)
            assert (got.status, got.reason) == (501, "unrecognised_route")
            assert "WebSocket" in got.error["message"]

    def test_nor_does_a_plain_request_meet_theirs(self, rig: LendingRig) -> None:
        got = answer(rig.port.connect(request("/ws", method="GET", token=BORROW)).got())
        assert (got.status, got.reason) == (403, "management_denied")

    def test_another_upgrade_is_a_plain_request(self, rig: LendingRig) -> None:
        headers = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAMAAABk"}
        rig.port.connect(request("/plain", method="GET", token=BORROW, headers=headers))
        first, fields, _ = head_of(rig.port.link().got())
        assert first == "GET /plain HTTP/1.1"
        assert not fields.keys() & headers.keys()

    def test_management_is_open_where_the_owner_says_so(self, lending: Callable[..., LendingRig]) -> None:
        got = refused(make(lending), b"/logs")
        assert (got.status, got.reason) == (403, "management_denied")
        open_to_all = make(lending, one_upstream(management_allowed=True))
        opened(open_to_all, b"/logs")
        assert not open_to_all.host.requests
        assert refused(open_to_all, b"/nowhere").status == 501

    def test_paths_are_read_twice(self, rig: LendingRig) -> None:
        opened(rig, b"/x/../ws?clientId=a")
        assert refused(rig, b"/%77s").status == 501

    def test_no_handshake_is_kept_as_a_plan(self, rig: LendingRig) -> None:
        opened(rig)
        connect(rig, b"/nowhere")
        assert all(head.note is None for head in rig.port.listener.heads.values())


class TestWhoAsks:
    @pytest.mark.parametrize("token", [None, b"Bearer nobody", b"Bearer " + READ.encode(), b"Basic eA=="])
    @pytest.mark.parametrize("path", [b"/ws", WORK, b"/logs", b"/nowhere"])
    def test_without_a_borrowers_token_it_is_401(
        self, rig: LendingRig, token: bytes | None, path: bytes
    ) -> None:
        assert refused(rig, path, authorization=token).status == 401
        assert rig.host.auth.denied["borrow"] == 1

    @pytest.mark.parametrize(
        ("host", "origin", "status"),
        [
            (b"127.0.0.1:9", None, 101),
            (b"127.0.0.1:9", b"http://127.0.0.1:9", 101),
            (b"127.0.0.1:9", b"https://evil.example", 401),
            (b"127.0.0.1:9", b"http://127.0.0.1:8", 401),
            (b"127.0.0.1:9", b"https://127.0.0.1:9", 401),
            (b"127.0.0.1:9", b"null", 401),
            (b"rebound.example:9", b"http://rebound.example:9", 401),
            (b"rebound.example:9", None, 401),
        ],
    )
    @pytest.mark.parametrize("path", [b"/ws", WORK])
    def test_a_page_in_a_browser_of_this_machine_is_no_trusted_program(
        self,
        lending: Callable[..., LendingRig],
        monkeypatch: pytest.MonkeyPatch,
        path: bytes,
        host: bytes,
        origin: bytes | None,
        status: int,
    ) -> None:
        monkeypatch.setattr(
            FakeTransport, "get_extra_info", lambda _s, name: ("127.0.0.1", 1) if name == "peername" else None
        )
        rig = make(lending, access=AccessSettings(trust_loopback=True))
        changes: dict[str, bytes | None] = {"authorization": None, "host": host, "origin": origin}
        if status == 401:
            assert refused(rig, path, **changes).status == 401
        else:
            opened(rig, path, **changes)

    def test_where_anybody_may_come_a_page_of_another_site_may_not(
        self, lending: Callable[..., LendingRig]
    ) -> None:
        rig = make(lending, access=AccessSettings(allow_unauthenticated_remote=True))
        for token in (None, b"Basic dXNlcjpwdw=="):  # what a browser sends for ws://user:pw@host/
            got = refused(rig, WORK, authorization=token, origin=b"https://evil.example")
            assert (got.status, got.reason) == (401, "unauthorized")
            assert "page" in got.error["message"]
        opened(rig, authorization=None)
        opened(rig, authorization=None, origin=b"http://proxy")

    def test_a_token_comes_from_no_browser(self, rig: LendingRig) -> None:
        opened(rig, WORK, origin=b"https://app.example")


class TestWhatIsSent:
    def test_the_upstreams_own_authority_and_credential(self, lending: Callable[..., LendingRig]) -> None:
        rig = make(lending, credential="of-the-server")
        connect(
            rig,
            b"/ws?clientId=a",
            origin=b"http://proxy",
            sec_fetch_site=b"same-origin",
            x_vacancy_borrower=b"pool/team",
            sec_websocket_protocol=b"chat",
        )
        first, fields, _ = head_of(rig.port.link().got())
        assert first == "GET /ws?clientId=a HTTP/1.1"
        assert fields["host"] == "10.0.0.9:8000"
        assert fields["authorization"] == "Bearer of-the-server"
        assert fields["upgrade"] == "websocket"
        assert fields["connection"] == "Upgrade"
        assert fields["sec-websocket-protocol"] == "chat"
        assert not fields.keys() & {"origin", "sec-fetch-site", "x-vacancy-borrower", "x-api-key"}

    def test_a_borrowers_token_never(self, rig: LendingRig) -> None:
        connect(rig)
        assert BORROW.encode() not in rig.port.link().got()

    @pytest.mark.parametrize(
        "changes",
        [
            {"sec_websocket_key": b"short"},
            {"sec_websocket_version": b"8"},
            {"connection": b"close"},
            {"content_length": b"5"},
            {"transfer_encoding": b"chunked"},
        ],
    )
    @pytest.mark.parametrize("path", [b"/ws", WORK])
    def test_nothing_where_the_handshake_is_none(
        self, rig: LendingRig, path: bytes, changes: dict[str, bytes]
    ) -> None:
        got = refused(rig, path, **changes)
        assert (got.status, got.reason) == (400, "bad_request")
        assert "WebSocket" in got.error["message"]
        assert got.headers["sec-websocket-version"] == "13"
        assert rig.port.app.counters.refused == {Reason.BAD_REQUEST: 1}
        assert not rig.host.requests


class TestPassThrough:
    def test_stays_while_the_owner_is_there_and_is_not_taken_back(self, rig: LendingRig) -> None:
        client = opened(rig)
        rig.presence(Evidence.PRESENT)
        rig.advance(60)
        rig.port.link().send(b"progress")
        assert client.got() == b"progress"
        opened(rig)
        assert rig.port.app.counters.passed == 2
        assert rig.port.app.counters.admitted == 0

    def test_a_refusal_of_the_server_is_passed_on(self, rig: LendingRig) -> None:
        client = connect(rig)
        rig.port.link().send(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
        assert client.got().startswith(b"HTTP/1.1 403 Forbidden\r\n")


class TestWork:
    def test_is_decided_before_the_upstream_hears_of_it(self, rig: LendingRig) -> None:
        rig.presence(Evidence.PRESENT)
        got = refused(rig, WORK)
        assert (got.status, got.reason) == (503, "owner_active")
        assert int(got.headers["retry-after"]) > 0

    def test_is_a_job_in_every_book(self, rig: LendingRig) -> None:
        opened(rig, WORK)
        (job,) = rig.host.ledger.jobs()
        assert (job.borrower, job.model, job.phase) == ("ci", None, Phase.FORWARDING)
        assert rig.port.app.counters.admitted == 1
        got = refused(rig, WORK)
        assert (got.status, got.reason) == (503, "resource_busy")

    def test_names_the_borrower_that_a_gateway_tells_of(self, rig: LendingRig) -> None:
        connect(rig, WORK, authorization=b"Bearer " + RELAY.encode(), x_vacancy_borrower=b"pool/team")
        (job,) = rig.host.ledger.jobs()
        assert job.borrower == "pool/team"

    def test_takes_no_query_where_one_could_choose_the_model(self, rig: LendingRig) -> None:
        got = refused(rig, WORK + b"?model=huge")
        assert (got.status, got.reason) == (400, "bad_request")
        assert "query" in got.error["message"]
        opened(rig, WORK + b"?")
        assert len(tuple(rig.host.ledger.jobs())) == 1

    @pytest.mark.parametrize("ends", ["client", "server", "reset", "idle"])
    def test_that_has_ended_is_held_until_the_server_shows_it(
        self, lending: Callable[..., LendingRig], ends: str
    ) -> None:
        rig = make(lending, limits=ListenerLimits(tunnel_idle_s=30))
        client = opened(rig, WORK)
        if ends == "client":
            client.hang_up()
        elif ends == "server":
            rig.port.link().hang_up()
        elif ends == "reset":
            rig.port.link().break_off(ConnectionResetError())
        else:
            rig.advance(31)
        (job,) = rig.host.ledger.jobs()
        assert job.phase is Phase.HELD
        assert rig.nudges == 1
        rig.observe()
        assert refused(rig, WORK).reason == "resource_busy"
        counted = {
            "client": Outcome.CLIENT_CLOSED,
            "server": Outcome.COMPLETED,
            "reset": Outcome.FAILED,
            "idle": Outcome.CANCELLED,
        }
        assert rig.port.app.counters.outcomes[counted[ends]] == 1

    def test_that_the_server_refused_is_released(self, rig: LendingRig) -> None:
        client = connect(rig, WORK)
        rig.port.link().send(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno")
        assert client.got().endswith(b"no")
        assert list(rig.host.ledger.jobs()) == []

    def test_that_the_server_never_got_is_released(self, rig: LendingRig) -> None:
        rig.port.upstream.connects = False
        got = answer(connect(rig, WORK).got())
        assert (got.status, got.reason) == (503, "upstream_unavailable")
        assert list(rig.host.ledger.jobs()) == []

    def test_that_got_no_valid_answer_is_held(self, rig: LendingRig) -> None:
        client = connect(rig, WORK)
        rig.port.link().send(agreed(b"AAAAAAAAAAAAAAAAAAAAAA=="))
        assert answer(client.got()).reason == "upstream_invalid"
        (job,) = rig.host.ledger.jobs()
        assert job.phase is Phase.HELD

    def test_is_taken_back_like_other_work(self, lending: Callable[..., LendingRig]) -> None:
        rig = make(lending, one_upstream(on_owner_return=OnOwnerReturn.CANCEL))
        client = opened(rig, WORK)
        rig.presence(Evidence.PRESENT)
        assert client.transport.aborted
        assert rig.port.link().transport.aborted
        assert client.got() == b""
        (job,) = rig.host.ledger.jobs()
        assert job.phase is Phase.HELD

    def test_before_the_101_taking_back_is_a_503(self, lending: Callable[..., LendingRig]) -> None:
        rig = make(lending, one_upstream(on_owner_return=OnOwnerReturn.CANCEL))
        client = connect(rig, WORK)
        rig.presence(Evidence.PRESENT)
        assert answer(client.got()).reason == "owner_active"


class TestTheCap:
    def test_is_a_503_that_says_when_to_come_back(self, lending: Callable[..., LendingRig]) -> None:
        rig = make(lending, limits=ListenerLimits(max_tunnels=1))
        client = opened(rig)
        for path in (b"/ws", WORK):
            got = refused(rig, path)
            assert (got.status, got.reason) == (503, "tunnel_cap")
            assert int(got.headers["retry-after"]) > 0
        assert list(rig.host.ledger.jobs()) == []
        client.hang_up()
        opened(rig)

    def test_may_be_reached_while_work_waits_for_a_sample(self, lending: Callable[..., LendingRig]) -> None:
        rig = make(lending, one_upstream(kind=ResourceType.NVIDIA), limits=ListenerLimits(max_tunnels=1))
        done = rig.port.connect(request(CHAT, token=BORROW))
        rig.port.link().send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        assert done.got().startswith(b"HTTP/1.1 200 ")
        waits = connect(rig, WORK)
        assert waits.got() == b""
        opened(rig)
        rig.samples.take()
        got = answer(waits.got())
        assert (got.status, got.reason) == (503, "tunnel_cap")
        assert list(rig.host.ledger.jobs()) == []


class TestClientIds:
    """`/ws` of ComfyUI with somebody's client id takes the place of their socket."""

    @pytest.fixture
    def rig(self, lending: Callable[..., LendingRig]) -> LendingRig:
        return lending(one_upstream(dialect=Dialect.COMFYUI))

    def test_belong_to_the_borrower_who_listens(self, rig: LendingRig) -> None:
        client = opened(rig, b"/ws?clientId=a")
        opened(rig, b"/api/ws?clientId=a")  # the same borrower again
        gateway = b"Bearer " + RELAY.encode()
        got = refused(rig, b"/ws?clientId=a", authorization=gateway)
        assert (got.status, got.reason) == (400, "bad_request")
        opened(rig, b"/ws?clientId=b", authorization=gateway)
        opened(rig, b"/ws", authorization=gateway)
        client.hang_up()
        rig.port.link(1).hang_up()
        assert refused(rig, b"/ws?clientId=a", authorization=gateway).status == 400
        rig.advance(4000)
        opened(rig, b"/ws?clientId=a", authorization=gateway)

    @pytest.mark.parametrize(
        "query", [b"clientId=a&clientId=b", b"clientid=a&clientId=b", b"clientId=" + b"a" * 300]
    )
    def test_have_one_reading(self, rig: LendingRig, query: bytes) -> None:
        assert refused(rig, b"/ws?" + query).status == 400

    def test_go_to_a_server_that_sees_no_origin(self, rig: LendingRig) -> None:
        connect(rig, b"/ws?clientId=a", origin=b"http://app.example", sec_fetch_site=b"cross-site")
        _, fields, _ = head_of(rig.port.link().got())
        assert not fields.keys() & {"origin", "sec-fetch-site"}
