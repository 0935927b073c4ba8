"""Every client command against a real agent, as a person or a script runs it: words, JSON, exit codes."""

from __future__ import annotations

import json
import tarfile
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from standins.agent_process import AgentProcess
from standins.agents import free_port, manifest
from standins.openai_server import OpenAiStandin
from vacancy_agent import cli, cli_api
from vacancy_agent.cli_client import _code_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.component
PAUSED = "paused on this machine (vacancy resume ends it)."


class Command:
    """`vacancy ...` in this process against one agent: its code, and what it wrote."""

    def __init__(self, agent: AgentProcess, capsys: pytest.CaptureFixture[str]) -> None:
        self.agent = agent
        self._capsys = capsys

    def __call__(self, *argv: str, api: str | None = None, state: Path | None = None) -> tuple[int, str, str]:
        self._capsys.readouterr()
        where = ["--api", api or self.agent.api_url, "--state-dir", str(state or self.agent.state)]
        try:
            code = cli.main([*argv, *where])
        except SystemExit as end:  # argparse's own
            code = int(end.code or 0)
        shown = self._capsys.readouterr()
        return code, shown.out, shown.err

    def json(self, *argv: str) -> Any:
        code, out, err = self(*argv, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)


@pytest.fixture(scope="module")
def upstream() -> Iterator[OpenAiStandin]:
    with OpenAiStandin() as one:
        yield one


@pytest.fixture(scope="module")
def agent(upstream: OpenAiStandin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    """One agent for all tests here; each leaves it lending."""
    with AgentProcess(tmp_path_factory.mktemp("agent"), manifest(upstream.url)) as one:
        yield one.lends()


@pytest.fixture
def vacancy(
    agent: AgentProcess, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    monkeypatch.delenv("VACANCY_TOKEN", raising=False)
    monkeypatch.delenv("VACANCY_API", raising=False)
    return Command(agent, capsys)


@pytest.fixture
def held(agent: AgentProcess, upstream: OpenAiStandin) -> Iterator[str]:
    """A job whose borrower left and whose server shows that it goes on; its number."""
    import urllib.request

    body = {"model": "m", "messages": [], "stream": True}
    body["standin"] = {"chunks": 10_000, "every_s": 0.02, "lingers_s": 4}
    request = urllib.request.Request(
        f"http://127.0.0.1:{agent.document['spec']['upstreams'][0]['port']}/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {agent.tokens['borrow']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - our own address
        answer.read(10)
    agent.until(lambda: agent.status()["agent"]["upstreams"][0]["held"] == 1)
    (hold,) = agent.ask("GET", "/admin/holds", scope="admin")[1]["holds"]
    yield hold["id"]
    agent.ask("DELETE", f"/admin/holds/{hold['id']}", scope="admin")


def test_status_shows_lending_owner_resources_and_upstreams(vacancy: Command):
    code, out, err = vacancy("status")
    assert (code, err) == (0, "")
    assert out.startswith("Lending is on.\nOwner: absent (")
    assert "RESOURCE" in out
    port = str(vacancy.agent.document["spec"]["upstreams"][0]["port"])
    row = next(line.split() for line in out.splitlines() if line.startswith("up "))
    assert row == ["up", "openai", port, "yes", "-", "0", "0"]
    assert vacancy.json("status")["agent"]["upstreams"][0]["lendable"]


def test_who_and_why(vacancy: Command):
    code, out, _ = vacancy("who")
    assert (code, out.splitlines()[0]) == (0, "Nobody is using it.")
    code, out, _ = vacancy("why")
    assert (code, out.splitlines()[-1]) == (0, "up: lends.")
    assert vacancy.json("who").keys() == vacancy.json("why").keys() == vacancy.json("status").keys()


def test_pause_and_resume(vacancy: Command):
    assert vacancy("pause") == (0, f"Lending is off: {PAUSED}\n", "")
    code, out, _ = vacancy("why")
    assert "up: does not lend, because lending is off for the whole machine" in out
    code, out, err = vacancy("pause", "--for", "2h")
    assert (code, err) == (0, "")
    assert out.startswith("Lending is off until 20")
    assert out.endswith(f"Z: {PAUSED}\n")
    assert vacancy.json("pause", "--for", "1h30m")["lending"]["by"] == "local"
    assert vacancy("resume") == (0, "Lending is on.\n", "")
    assert vacancy.json("resume")["lending"]["allowed"]


def test_pause_until_a_time(vacancy: Command):
    until = vacancy.json("pause", "--for", "3h")["lending"]["pausedUntil"]
    assert vacancy("pause", "--until", until) == (0, f"Lending is off until {until}: {PAUSED}\n", "")
    vacancy("resume")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--for", "2 hours"], '"for" must be a duration such as 45m, 2h or 1h30m'),
        (["--for", ""], '"for" must be a duration'),
        (["--until", "tomorrow"], '"until" must be an RFC 3339 time with its zone'),
        (["--until", "2001-01-01T00:00:00Z"], '"until" must lie in the future'),
        (["--for", "2h", "--until", "2099-01-01T00:00:00Z"], "not allowed with argument"),
    ],
)
def test_a_wrong_end_is_wrong_input_and_pauses_nothing(vacancy: Command, options: list[str], told: str):
    code, out, err = vacancy("pause", *options)
    assert (code, out) == (2, "")
    assert told in err
    assert "Traceback" not in err
    assert vacancy.json("status")["agent"]["lending"]["allowed"]


def test_holds_are_listed_and_released_once(vacancy: Command, held: str):
    code, out, _ = vacancy("holds")
    assert code == 0
    row = next(line.split() for line in out.splitlines() if line.startswith(held))
    assert row[:4] == [held, "up", "borrow", "m"]
    assert out.endswith("Free one with: vacancy holds --release ID\n")
    assert vacancy.json("holds")["holds"][0]["why"] == "the borrower left before the reply was complete"
    assert "up: 1 job is held until the end is proved (vacancy holds)." in vacancy("why")[1]
    assert vacancy("holds", "--release", held) == (0, f"Released {held}.\n", "")
    assert vacancy("holds", "--release", held) == (3, "", f"vacancy: there is no hold {held}\n")
    assert vacancy("holds") == (0, "Nothing is held.\n", "")


def test_releasing_what_is_no_number_is_wrong_input(vacancy: Command):
    code, _, err = vacancy("holds", "--release", "../status")
    assert (code, err) == (
        2,
        "vacancy: '../status' is not the number of a hold: `vacancy holds` lists them (GET /admin/holds)\n",
    )


@pytest.mark.parametrize("command", ["status", "who", "why", "pause", "resume", "holds"])
def test_no_agent_no_token_and_a_wrong_one(vacancy: Command, tmp_path: Path, command: str):
    nowhere = f"http://127.0.0.1:{free_port()}"
    code, out, err = vacancy(command, api=nowhere)
    assert (code, out) == (1, "")
    assert err.startswith(f"vacancy: no agent answers at {nowhere} (")
    assert err.endswith("; is `vacancy agent` running?\n")
    code, out, err = vacancy(command, state=tmp_path)
    assert (code, out) == (3, "")
    assert err.startswith(f"vacancy: no token was found in {tmp_path}/tokens.json: give --state-dir as the")
    code, out, err = vacancy(command, "--token", "wrong")
    assert (code, out) == (3, "")
    assert err.startswith(f"vacancy: the agent at {vacancy.agent.api_url} does not accept this token for it ")
    code, _, err = vacancy(command, api="localhost:8470")
    assert (code, err) == (2, "vacancy: --api must be an http:// or https:// URL, not 'localhost:8470'\n")


@pytest.mark.parametrize(("command", "scope"), [("status", "admin"), ("pause", "read"), ("holds", "borrow")])
def test_a_token_of_another_scope_is_not_enough(vacancy: Command, command: str, scope: str):
    code, out, err = vacancy(command, "--token", vacancy.agent.tokens[scope])
    assert (code, out) == (3, "")
    assert "does not accept this token" in err


def test_address_and_token_may_come_from_the_environment(
    vacancy: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("VACANCY_API", vacancy.agent.api_url)
    monkeypatch.setenv("VACANCY_TOKEN", vacancy.agent.tokens["read"])
    assert cli.main(["status"]) == 0
    assert capsys.readouterr().out.startswith("Lending is on.")


def test_what_answers_json_but_is_no_agent_of_this_version(vacancy: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cli_api, "call", lambda *_, **__: {"hello": "world"})
    for command in ("status", "who", "why", "pause", "holds"):
        code, out, err = vacancy(command)
        assert (code, out) == (1, "")
        assert "is it a vacancy agent of this version?" in err
    assert vacancy("status", "--json")[0] == 0


@pytest.mark.parametrize(
    ("status", "code"), [(400, 2), (401, 3), (404, 3), (405, 3), (409, 3), (413, 3), (500, 1), (503, 1)]
)
def test_exit_codes_by_the_agents_answer(status: int, code: int):
    assert _code_of(status) == code


def test_a_debug_window_logs_every_request_and_ends(vacancy: Command):
    code, out, err = vacancy("debug", "--for", "1h")
    assert (code, err) == (0, "")
    assert out.startswith("Every request is logged until 20")
    vacancy.agent.ask("GET", "/status", scope="read")
    code, _, err = vacancy("debug", "--for", "61m")
    assert (code, err) == (
        2,
        'vacancy: "for" must be a duration such as 45m, 2h or 1h30m, at most an hour\n',
    )
    assert vacancy("debug", "--for", "0s") == (0, "Requests are not logged any more.\n", "")
    assert vacancy.json("debug", "--for", "0s")["debugUntil"] is None


def test_diagnostics_are_one_private_archive_without_a_token(vacancy: Command, tmp_path: Path):
    out = tmp_path / "found.tar"
    code, told, err = vacancy("diagnostics", "--out", str(out))
    assert (code, err) == (0, "")
    assert told.startswith(f"Written to {out}.")
    assert out.stat().st_mode & 0o777 == 0o600
    content = out.read_bytes()
    with tarfile.open(out) as tar:
        names = {name.rpartition("/")[2] for name in tar.getnames()}
    assert names == {"about.json", "status.json", "config.json", "holds.json", "log.txt", "metrics.txt"}
    for token in vacancy.agent.tokens.values():
        assert token.encode() not in content
        assert sha256(token.encode()).hexdigest().encode() not in content
    assert b" listens upstream=up " in content


@pytest.mark.parametrize("where", ["nowhere/found.tar", "."])
def test_an_archive_that_cannot_be_written(vacancy: Command, tmp_path: Path, where: str):
    code, out, err = vacancy("diagnostics", "--out", str(tmp_path / where))
    assert (code, out) == (1, "")
    assert err.startswith(f"vacancy: {tmp_path / where} cannot be written: ")
