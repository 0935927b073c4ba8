"""An agent without one of its parts ends, non-zero, and says which part it was: real processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from standins.agent_process import AgentProcess
from standins.agents import manifest
from standins.sockets import stop_listening

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.component

FAULTY = """
import sys, {module} as module
from vacancy_agent import cli

before = module.{kind}.{method}
calls = []

def faulty(self, *args, **kwargs):
    calls.append(1)
    if len(calls) > {after}:
        {fault}
    return before(self, *args, **kwargs)

module.{kind}.{method} = faulty
sys.exit(cli.main())
"""
RAISE, RETURN = 'raise LookupError("a bug")', "return returned()"
RETURNS = "async def returned(): pass\n"


def faulty(module: str, kind: str, method: str, *, after: int = 0, fault: str = RAISE) -> tuple[str, str]:
    return "-c", RETURNS + FAULTY.format(module=module, kind=kind, method=method, after=after, fault=fault)


PANICS = [
    (
        faulty("vacancy_agent.collect.host", "HostProbe", "memory", after=3),
        "the collector failed: LookupError",
    ),
    (faulty("vacancy_agent.collect.observers", "Observers", "run", fault=RETURN), "the collector ended"),
    (faulty("vacancy_agent.core.board", "Board", "tick", after=2), "the clock failed: LookupError"),
    (
        faulty("vacancy_agent.upstreams.hold_keeper", "HoldKeeper", "run", fault=RETURN),
        "the hold keeper ended",
    ),
    (
        faulty("vacancy_agent.wiring.reload", "Reload", "_look"),
        "the look at the manifest failed: LookupError",
    ),
]


@pytest.mark.parametrize(("program", "told"), PANICS, ids=[told for _, told in PANICS])
def test_a_part_that_panics_or_returns(program: tuple[str, str], told: str, tmp_path: Path):
    with AgentProcess(tmp_path, manifest("http://127.0.0.1:9"), program=program) as agent:
        assert agent.process.wait(60) == 1
        last = agent.text.splitlines()[-1]
        assert last.startswith(f"vacancy agent: {told}"), agent.text
        assert "Traceback (most recent call last)" in agent.text


@pytest.mark.parametrize("which", ["proxy", "api"])
def test_a_socket_that_stops_listening(which: str, tmp_path: Path):
    document = manifest("http://127.0.0.1:9")
    spec = document["spec"]
    port = spec["access"]["apiPort"] if which == "api" else spec["upstreams"][0]["port"]
    with AgentProcess(tmp_path, document) as agent:
        agent.lends()
        stop_listening(agent.process.pid, port)
        assert agent.process.wait(30) == 1
        name = "the API" if which == "api" else "the proxy of up"
        assert agent.text.splitlines()[-1] == f"vacancy agent: stopped listening: {name}"


def test_an_end_that_was_asked_for_is_none_of_these(tmp_path: Path):
    with AgentProcess(tmp_path, manifest("http://127.0.0.1:9")) as agent:
        agent.lends()
        assert agent.end() == 0
        assert "has ended" not in agent.text
