"""`vacancy agent` as a process: signals, a manifest that changes under it, and an end that leaves nothing."""

from __future__ import annotations

import asyncio
import copy
import signal
import socket
import ssl
import time
import urllib.request
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from standins.agent_process import DEV, AgentProcess
from standins.agents import free_port, manifest
from standins.certificates import write_certificate
from vacancy_agent.store.journal_format import read_header

if TYPE_CHECKING:
    from pathlib import Path

    from lab.logind_lab import LogindLab
    from lab.nvidia_smi_lab import NvidiaSmiLab
    from standins.openai_server import OpenAiStandin

pytestmark = pytest.mark.component

UNCLEAN = ("Traceback", "Task was destroyed", "never awaited", "Warning", "unclosed", "Unclosed", "Exception")
BIG = 5 << 20


class Stream:
    """A borrower's stream over a plain socket, which sees exactly how it ends."""

    def __init__(
        self, agent: AgentProcess, port: int, behaviour: str = '{"chunks":100000,"every_s":0.02}'
    ) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=15)
        body = f'{{"model":"m","messages":[],"stream":true,"standin":{behaviour}}}'
        head = (
            "POST /v1/chat/completions HTTP/1.1",
            "Host: x",
            f"Authorization: Bearer {agent.tokens['borrow']}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        )
        self.socket.sendall("\r\n".join([*head, "", body]).encode())
        self.head = self.socket.recv(4096)

    def flows(self) -> bool:
        """Whether more of it comes."""
        return bool(self.socket.recv(4096))

    def is_cut(self) -> bool:
        """Whether it ends without looking complete."""
        tail = b""
        try:
            while piece := self.socket.recv(65536):
                tail = (tail + piece)[-64:]
        except ConnectionResetError:
            pass
        self.socket.close()
        return not tail.endswith(b"0\r\n\r\n")


def children(agent: AgentProcess) -> list[psutil.Process]:
    return psutil.Process(agent.process.pid).children(recursive=True)


def condition(agent: AgentProcess, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(c for c in agent.status()["conditions"] if c["type"] == name)
    return found


def big_body(agent: AgentProcess, port: int) -> int:
    """A request whose body is read in the helper process; its status."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        data=b'{"model":"m","messages":[],"pad":"' + b"x" * BIG + b'"}',
        headers={"Authorization": f"Bearer {agent.tokens['borrow']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        answer.read()
        return int(answer.status)


def test_sigterm_while_a_stream_runs_ends_it_within_three_seconds_and_leaves_nothing(
    standin: OpenAiStandin, tmp_path: Path, nvidia_smi: NvidiaSmiLab
):
    """With warnings as errors: nothing unclosed, no task destroyed, and the journal says it was in order."""
    document = manifest(standin.url)
    port = document["spec"]["upstreams"][0]["port"]
    document["spec"]["resources"].append({"name": "gpu", "type": "nvidia"})
    nvidia_smi.mode("hang")
    with AgentProcess(tmp_path, document, python=DEV) as agent:
        agent.lends()
        assert big_body(agent, port) == 200
        agent.until(lambda: len(children(agent)) >= 2)  # the helper that reads bodies, and a hung nvidia-smi
        left = children(agent)
        with closing(socket.create_connection(("127.0.0.1", port))):  # an idle client holds nothing up
            stream = Stream(agent, port)
            began = time.monotonic()
            assert agent.end() == 0
            assert time.monotonic() - began < 3.0
            assert stream.is_cut()
        assert [word for word in UNCLEAN if word in agent.text] == [], agent.text
        _, alive = psutil.wait_procs(left, timeout=5)
        assert alive == []
    header = read_header((agent.state / "holds" / "up.holds").read_bytes())
    assert header is not None
    assert header.clean


@pytest.mark.logind
async def test_the_bus_is_left_in_order_too(standin: OpenAiStandin, tmp_path: Path, logind_lab: LogindLab):
    document = manifest(standin.url, spec_owner={"presence": "auto"})

    def live_and_end() -> str:
        with AgentProcess(tmp_path, document, python=DEV) as agent:
            agent.lends()
            assert agent.end() == 0
            return agent.text

    text = await asyncio.to_thread(live_and_end)
    assert [word for word in UNCLEAN if word in text] == [], text


@pytest.mark.parametrize("moment", ["starting", "at work"])
def test_ctrl_c_is_success_and_needs_no_patience(standin: OpenAiStandin, tmp_path: Path, moment: str):
    with AgentProcess(tmp_path, manifest(standin.url)) as agent:
        agent.until(lambda: "api address" in agent.text)
        if moment == "at work":
            agent.lends()
        for _ in range(3):
            agent.signal(signal.SIGINT)
        assert agent.process.wait(10) == 0
        assert "Traceback" not in agent.text


def test_a_manifest_that_changes_under_it(standin: OpenAiStandin, tmp_path: Path):
    document = manifest(standin.url, spec_resources=[{"name": n, "type": "memory"} for n in ("ram", "more")])
    first = document["spec"]["upstreams"][0]
    second = {**first, "name": "aside", "port": free_port(), "resource": "more"}
    document["spec"]["upstreams"].append(second)
    with AgentProcess(tmp_path, document) as agent:
        agent.lends()
        stream = Stream(agent, first["port"])
        assert stream.head.startswith(b"HTTP/1.1 200")

        # An edit of one upstream reaches that one alone, without a signal.
        edited = copy.deepcopy(document)
        edited["spec"]["upstreams"][1]["port"] = free_port()
        agent.write(edited)
        agent.until(lambda: agent.status()["agent"]["upstreams"][1]["port"] != second["port"])
        assert stream.flows()
        digest = agent.status()["agent"]["configDigest"]

        # An invalid one changes nothing, and every error is named with its path.
        wrong = copy.deepcopy(edited)
        wrong["spec"]["upstreams"][0]["slots"] = 0
        wrong["spec"]["owner"]["idel"] = "3m"
        agent.write(wrong)
        agent.until(lambda: condition(agent, "ConfigApplied")["status"] == "False")
        message = condition(agent, "ConfigApplied")["message"]
        assert "spec.upstreams[0].slots: " in message
        assert "spec.owner.idel: " in message
        assert agent.status()["agent"]["configDigest"] == digest
        assert stream.flows()

        # A manifest that is gone for a moment is no error; SIGHUP applies what is there now.
        agent.manifest.rename(tmp_path / "away")
        agent.signal(signal.SIGHUP)
        time.sleep(0.3)
        assert condition(agent, "ConfigApplied")["message"] == message
        edited["spec"]["upstreams"][1]["slots"] = 4
        agent.write(edited)
        agent.signal(signal.SIGHUP)
        agent.until(lambda: condition(agent, "ConfigApplied")["status"] == "True")
        assert agent.status()["agent"]["configDigest"] != digest
        assert stream.flows()

        # One that is taken out stops listening.
        edited["spec"]["upstreams"].pop()
        agent.write(edited)
        agent.signal(signal.SIGHUP)
        agent.until(lambda: len(agent.status()["agent"]["upstreams"]) == 1)
        assert stream.flows()
        assert agent.end() == 0
        assert stream.is_cut()
        assert "Traceback" not in agent.text


def test_a_port_that_is_free_later_is_bound_without_an_edit(standin: OpenAiStandin, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        document = manifest(standin.url, port=taken.getsockname()[1])
        with AgentProcess(tmp_path, document, "--quiet") as agent:
            agent.until(lambda: not agent.status()["agent"]["upstreams"][0]["bound"])
            assert agent.ask("GET", "/readyz") == (
                503,
                {"ready": False, "missing": ["the proxy of up does not listen"]},
            )
            assert "cannot listen errors=" in agent.text, "that is shown with --quiet too"
            taken.close()
            agent.lends()
            agent.ready()


def test_everything_over_tls(standin: OpenAiStandin, tmp_path: Path):
    authority = write_certificate(tmp_path / "state" / "secrets" / "cert")
    document = manifest(standin.url)
    document["spec"]["access"]["tls"] = {"secretRef": {"name": "cert"}}
    port, api = document["spec"]["upstreams"][0]["port"], document["spec"]["access"]["apiPort"]
    context = ssl.create_default_context(cafile=str(authority))

    def get(where: int, path: str, scope: str) -> int:
        request = urllib.request.Request(f"https://127.0.0.1:{where}{path}")
        request.add_header("Authorization", f"Bearer {agent.tokens[scope]}")
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:  # noqa: S310
            answer.read()
            return int(answer.status)

    with AgentProcess(tmp_path, document, python=DEV) as agent:
        agent.until(lambda: get(api, "/healthz", "read") == 200)
        assert get(api, "/status", "read") == 200
        agent.until(lambda: get(port, "/v1/models", "borrow") == 200)
        assert agent.end() == 0
        assert [word for word in UNCLEAN if word in agent.text] == [], agent.text
