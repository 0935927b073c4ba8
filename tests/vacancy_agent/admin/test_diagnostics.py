"""One archive that can be sent to a stranger, whatever is broken."""

from __future__ import annotations

import io
import json
import tarfile

import pytest

from standins.hosts import host, resource, upstream
from standins.running import StillAgent
from vacancy_agent.admin import diagnostics
from vacancy_agent.core.job import Job

NAMES = {"about.json", "status.json", "config.json", "holds.json", "log.txt", "metrics.txt"}


@pytest.fixture
def agent() -> StillAgent:
    return StillAgent(host((upstream("llm", ("gpu",)),), (resource("gpu"),)))


def parts(agent: StillAgent) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(diagnostics.archive(agent, {"llm": "refused"}))) as tar:
        members = tar.getmembers()
        assert {member.mode for member in members} == {0o600}
        assert {member.mtime for member in members} == {int(agent.clock.wall())}
        files = {member.name: tar.extractfile(member) for member in members}
    return {name.removeprefix("vacancy-diagnostics/"): file.read() for name, file in files.items() if file}


def test_everything_is_in_it(agent: StillAgent):
    job = agent.ledger.reserve("llm", agent.clock.now(), borrower="ci")
    assert isinstance(job, Job)
    agent.ledger.hold(job.id, "the borrower left", agent.clock.now())
    found = parts(agent)
    assert found.keys() == NAMES
    assert json.loads(found["status.json"])["upstreams"]["llm"]["server"]["why"] == "refused"
    assert json.loads(found["config.json"]) == {"kind": "AgentConfig"}
    assert json.loads(found["holds.json"])["holds"][0]["why"] == "the borrower left"
    assert json.loads(found["about.json"])["version"] == "0.1.0"
    assert found["log.txt"] == b"2026-11-30T08:00:00.000Z held job=7\n"
    assert b"vacancy_lendable{" in found["metrics.txt"]


def test_a_part_that_is_broken_is_in_it_with_its_error(agent: StillAgent):
    agent.configured = "no JSON"
    found = parts(agent)
    assert found.keys() == NAMES
    assert found["config.json"].startswith(b"this part could not be made:\nTraceback")
