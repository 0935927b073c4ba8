"""An agent that is left without a free descriptor lives on, and lends again when there are some."""

from __future__ import annotations

import resource
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from standins.agent_process import AgentProcess
from standins.agents import manifest

if TYPE_CHECKING:
    from lab.nvidia_smi_lab import NvidiaSmiLab
    from standins.openai_server import OpenAiStandin

pytestmark = pytest.mark.component

CLIENTS = 300


def limit(agent: AgentProcess, soft: int) -> int:
    """Set the limit of its descriptors; the one before."""
    before, hard = resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE, (soft, hard))
    return before


def open_files(agent: AgentProcess) -> int:
    return len(list(Path(f"/proc/{agent.process.pid}/fd").iterdir()))


def test_no_free_descriptor_ends_no_agent(
    standin: OpenAiStandin, nvidia_smi: NvidiaSmiLab, tmp_path: Path
) -> None:
    document = manifest(standin.url)
    document["spec"]["resources"] += [
        {"name": "cpu", "type": "cpu", "capacity": {"maxUtilizationPercent": 100}},
        {"name": "gpu", "type": "nvidia", "pressure": {"mode": "off"}},
    ]
    document["spec"]["upstreams"][0]["alsoRequires"] = ["cpu"]
    with AgentProcess(tmp_path, document) as agent:
        agent.ready().lends()
        before = limit(agent, 4)
        document["metadata"]["name"] = "other"
        agent.write(document)  # to be applied without descriptors
        time.sleep(4)
        limit(agent, before)
        agent.until(lambda: "applied" in agent.text)
        agent.lends()
        assert "Traceback" not in agent.text


def test_slow_clients_of_the_api_do_not_take_them_all(standin: OpenAiStandin, tmp_path: Path) -> None:
    document = manifest(standin.url)
    with AgentProcess(tmp_path, document) as agent, ExitStack() as stack:
        agent.ready().lends()
        before = open_files(agent)
        for _ in range(CLIENTS):
            client = socket.create_connection(("127.0.0.1", document["spec"]["access"]["apiPort"]))
            stack.callback(client.close)
            client.sendall(b"GET /healthz HT")
        assert agent.ask("GET", "/readyz")[0] == 200
        assert open_files(agent) < before + CLIENTS
