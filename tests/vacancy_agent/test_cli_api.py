"""Whatever answers at the agent's address, and however: a sentence that says what to do."""

from __future__ import annotations

import argparse
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from standins.agents import free_port
from standins.certificates import write_certificate
from vacancy_agent import cli_api
from vacancy_agent.cli_api import ApiRefusedError, ApiUnreachableError, call, find_token, segment
from vacancy_agent.wiring.secret_files import Certificate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def arguments(**given: Any) -> argparse.Namespace:
    return argparse.Namespace(**({"api": None, "token": None, "state_dir": None} | given))


@pytest.fixture(autouse=True)
def _no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever runs the tests may have an agent of their own."""
    monkeypatch.delenv("VACANCY_API", raising=False)
    monkeypatch.delenv("VACANCY_TOKEN", raising=False)
    monkeypatch.setattr(cli_api, "default_state_dir", lambda: tmp_path / "default")


class Web:
    """A web server that answers as told and keeps what it was asked."""

    def __init__(self) -> None:
        self.status, self.body = 200, b"{}"
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version: ClassVar[str] = "HTTP/1.1"

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                web.asked.append((self.command, self.path, headers, self.rfile.read(length)))
                self.send_response(web.status)
                self.send_header("Content-Length", str(len(web.body)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(web.body)

            do_GET = do_POST = do_DELETE = answer  # noqa: N815 - the base class's names

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def refuse(self, status: int, message: str) -> None:
        error = {"message": message, "type": "no_vacancy"}
        self.status, self.body = status, json.dumps({"error": error}).encode()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def web() -> Iterator[Web]:
    one = Web()
    yield one
    one.close()


# Tokens


def test_the_option_comes_before_the_environment_and_that_before_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "default").mkdir()
    (tmp_path / "default" / "tokens.json").write_text('{"read": "of-the-file"}')
    assert find_token(arguments(), "read") == "of-the-file"
    assert find_token(arguments(), "admin") is None
    monkeypatch.setenv("VACANCY_TOKEN", "of-the-environment")
    assert find_token(arguments(), "read") == "of-the-environment"
    assert find_token(arguments(token="given"), "read") == "given"


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"read": 5}', '{"read": null}', "\xff"])
def test_a_file_that_holds_no_token_is_no_token(tmp_path: Path, content: str | None):
    if content is not None:
        (tmp_path / "tokens.json").write_text(content, encoding="latin-1")
    assert find_token(arguments(state_dir=str(tmp_path)), "read") is None


def test_a_segment_cannot_lead_elsewhere():
    assert segment("../status?x#y") == "..%2Fstatus%3Fx%23y"


# Addresses


@pytest.mark.parametrize(
    "base",
    ["127.0.0.1:8470", "ftp://x", "file:///etc/passwd", "http://", "http://x:port", "http://x:0",
     "http://a b", "http://x\n", "http://[::1", "http://x:99999", "http://é", ""],
)  # fmt: skip
def test_an_address_that_is_none_is_wrong_input(base: str, monkeypatch: pytest.MonkeyPatch):
    given = arguments(api=base) if base else arguments()
    if not base:
        monkeypatch.setenv("VACANCY_API", "nonsense")
    with pytest.raises(ApiRefusedError, match="--api must be an http:// or https:// URL") as refused:
        call(given, "GET", "/status", scope="read")
    assert refused.value.status == 400


@pytest.mark.parametrize("token", ["schlüssel", "two\nlines", "\x7f"])
def test_a_token_that_no_header_can_carry_is_wrong_input(token: str):
    with pytest.raises(ApiRefusedError, match="the token has characters that no token has") as refused:
        call(arguments(token=token), "GET", "/status", scope="read")
    assert refused.value.status == 400


# Answers


@pytest.mark.component
def test_what_is_asked_and_with_what(web: Web, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    web.body = b'{"lending": {}}'
    args = arguments(api=web.url + "/", token="sesame")
    assert call(args, "POST", "/admin/pause", scope="admin", body={"for": "2h"}) == {"lending": {}}
    assert call(args, "GET", "/status", scope="read") == {"lending": {}}
    (first, second) = web.asked
    assert (first[0], first[1], json.loads(first[3])) == ("POST", "/admin/pause", {"for": "2h"})
    assert first[2]["content-type"] == "application/json"
    assert (second[0], second[1], second[3]) == ("GET", "/status", b"")
    assert first[2]["authorization"] == second[2]["authorization"] == "Bearer sesame"


@pytest.mark.component
def test_without_a_token_none_is_sent_and_the_message_says_where_one_could_be(web: Web):
    web.refuse(401, "This needs a token")
    told = r"^no token was found in \S+/default/tokens\.json: give --state-dir as the agent was given it"
    with pytest.raises(ApiRefusedError, match=told) as no:
        call(arguments(api=web.url), "GET", "/status", scope="read")
    assert no.value.status == 401
    assert "authorization" not in web.asked[0][2]
    told = r"^the agent at \S+ does not accept this token for it \(--api names another agent\): give"
    with pytest.raises(ApiRefusedError, match=told):
        call(arguments(api=web.url, token="wrong"), "GET", "/status", scope="read")


@pytest.mark.component
@pytest.mark.parametrize("status", [400, 404, 409, 500])
def test_a_no_has_the_agents_own_words(web: Web, status: int):
    web.refuse(status, "there is no hold 7")
    with pytest.raises(ApiRefusedError, match=r"^there is no hold 7$") as refused:
        call(arguments(api=web.url), "DELETE", "/admin/holds/7", scope="admin")
    assert refused.value.status == status


@pytest.mark.component
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>"),
        (200, b"[]"),
        (200, b'"ok"'),
        (200, b""),
        (200, b"\xff\xfe"),
        (404, b"<html>not found"),
        (404, b"{}"),
        (502, b'{"error": "bad gateway"}'),
        (401, b"login please"),
        (404, b'{"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}'),
    ],
)
def test_what_is_no_vacancy_agent_is_called_so(web: Web, status: int, body: bytes):
    web.status, web.body = status, body
    with pytest.raises(ApiUnreachableError, match=f"^what answers at {web.url} is not a vacancy agent"):
        call(arguments(api=web.url), "GET", "/status", scope="read")


@pytest.mark.component
@pytest.mark.parametrize(
    "greeting",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{",
    ],
)
def test_what_speaks_no_http_or_breaks_off_is_no_agent_either(greeting: bytes):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            client, _ = server.accept()
            with client:
                client.recv(4096)
                client.sendall(greeting)

        thread = threading.Thread(target=greet)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ApiUnreachableError, match="is not a vacancy agent"):
            call(arguments(api=url), "GET", "/status", scope="read")
        thread.join()


@pytest.mark.component
def test_nobody_there():
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ApiUnreachableError, match=f"^no agent answers at {url} .*is `vacancy agent` running"):
        call(arguments(api=url), "GET", "/status", scope="read")


@pytest.mark.component
def test_an_agent_that_does_not_answer_in_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cli_api, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ApiUnreachableError, match="timed out"):
            call(arguments(api=url), "GET", "/status", scope="read")


@pytest.mark.component
def test_a_certificate_is_trusted_when_its_authority_is_given(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    authority = write_certificate(tmp_path / "cert")
    web.server.socket = (
        Certificate(tmp_path / "cert", "").context().wrap_socket(web.server.socket, server_side=True)
    )
    args = arguments(api=web.url.replace("http:", "https:"))
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(ApiUnreachableError, match=r"is not trusted .*: set SSL_CERT_FILE to"):
        call(args, "GET", "/status", scope="read")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    assert call(args, "GET", "/status", scope="read") == {}
