"""Names and meanings of the metrics; above all, that what is not known has no sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from standins.hosts import host, memory, resource, seen, upstream
from standins.running import StillAgent
from vacancy_agent.admin import metrics
from vacancy_agent.core.board import Pressure
from vacancy_agent.core.facts import (
    CpuCapacity,
    Evidence,
    MemoryCapacity,
    MiB,
    Percent,
    Ready,
    Stale,
    Unknown,
)
from vacancy_agent.core.job import Job
from vacancy_agent.core.lending import LocalPause
from vacancy_agent.core.settings import ResourceType
from vacancy_agent.proxy.counters import Outcome, UpstreamCounters
from vacancy_api.reasons import Reason
from vacancy_http import Counters

if TYPE_CHECKING:
    from collections.abc import Mapping

MIB = 1 << 20
RESOURCES = (resource("gpu"), resource("ram", ResourceType.MEMORY), resource("cpu", ResourceType.CPU))
UPSTREAMS = (upstream("llm", ("gpu", "ram", "cpu")),)
Sample = tuple[str, frozenset[tuple[str, str]]]


def an_agent(*, vacant: bool = True) -> StillAgent:
    return StillAgent(host(UPSTREAMS, RESOURCES), vacant=vacant)


def samples(agent: StillAgent) -> dict[Sample, float]:
    body, content_type = metrics.scrape(agent)
    assert content_type.startswith("text/plain; version=")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def key(name: str, labels: Mapping[str, str]) -> Sample:
    return f"vacancy_{name}", frozenset(labels.items())


def value(agent: StillAgent, name: str, **labels: str) -> float | None:
    return samples(agent).get(key(name, labels))


def series(agent: StillAgent, resource_name: str) -> set[str]:
    label = ("resource", resource_name)
    return {name.removeprefix("vacancy_resource_") for name, labels in samples(agent) if label in labels}


def test_every_name_begins_alike_and_every_family_explains_itself():
    text = metrics.scrape(an_agent())[0].decode()
    assert {line.split()[2].split("_")[0] for line in text.splitlines() if line.startswith("#")} == {
        "vacancy"
    }
    helps = [line.split(maxsplit=3) for line in text.splitlines() if line.startswith("# HELP")]
    assert all(len(parts) == 4 and parts[3].endswith(".") for parts in helps)


def test_memory_is_in_bytes_and_processors_have_none():
    agent = an_agent()
    now = agent.clock.now()
    agent.board.set_capacity("ram", Ready(MemoryCapacity(MiB(3), MiB(8)), now))
    agent.board.set_capacity("cpu", Ready(CpuCapacity(Percent(12.5)), now))
    assert value(agent, "resource_free_bytes", resource="ram") == 3 * MIB
    assert value(agent, "resource_total_bytes", resource="ram") == 8 * MIB
    assert value(agent, "resource_utilization_pct", resource="cpu") == 12.5
    assert series(agent, "ram") == {"enabled", "free_bytes", "total_bytes", "sample_age_seconds"}
    assert series(agent, "cpu") == {"enabled", "utilization_pct", "sample_age_seconds"}


def test_a_gpu_that_tells_its_load_has_both():
    agent = an_agent()
    agent.board.set_capacity("gpu", Ready(MemoryCapacity(MiB(1), MiB(2), Percent(0.0)), agent.clock.now()))
    assert value(agent, "resource_utilization_pct", resource="gpu") == 0.0


@pytest.mark.parametrize("how", ["unknown", "stale", "old", "never"])
def test_a_reading_that_failed_takes_its_gauges_with_it(how: str):
    agent = an_agent(vacant=how != "never")
    if how == "old":
        agent.clock.advance(agent.settings.sampling.stale_after + 0.1)
    for name in ("gpu", "ram", "cpu"):
        if how == "unknown":
            agent.board.set_capacity(name, Unknown("it fell off the bus"))
        if how == "stale":
            agent.board.set_capacity(name, Stale(memory(), agent.clock.now(), "the machine slept"))
        assert series(agent, name) == {"enabled"}
    agent.observe()
    assert series(agent, "ram") == {"enabled", "free_bytes", "total_bytes", "sample_age_seconds"}


def test_ages_count_from_the_reading():
    agent = an_agent()
    agent.clock.advance(4)
    assert value(agent, "resource_sample_age_seconds", resource="gpu") == 4.0
    assert value(agent, "presence_age_seconds") == 4.0


def test_presence_that_was_never_read_has_no_age():
    assert value(an_agent(vacant=False), "presence_age_seconds") is None


def test_switches_and_veto_are_gauges_of_nought_and_one():
    agent = an_agent()
    assert value(agent, "lending_allowed") == 1
    assert value(agent, "owner_veto") == 0
    assert value(agent, "lendable", upstream="llm") == 1
    agent.board.set_presence(seen(Evidence.PRESENT, agent.clock.now()), agent.clock.now())
    assert value(agent, "owner_veto") == 1
    assert value(agent, "lendable", upstream="llm") == 0
    agent.board.set_local_pause(LocalPause(None))
    agent.board.set_resource_enabled("ram", False)
    assert value(agent, "lending_allowed") == 0
    assert value(agent, "resource_enabled", resource="ram") == 0
    assert value(agent, "resource_enabled", resource="gpu") == 1


def test_an_upstream_that_does_not_listen_is_not_lendable():
    agent = an_agent()
    agent.unbound = {"llm"}
    assert value(agent, "proxy_bound", upstream="llm") == 0
    assert value(agent, "lendable", upstream="llm") == 0


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (Pressure.OFF, None),
        (Pressure.UNKNOWN, None),
        (Pressure.CALIBRATING, None),
        (Pressure.CLEAR, 0),
        (Pressure.BUILDING, 0),
        (Pressure.ENGAGED, 1),
    ],
)
def test_pressure_is_shown_where_it_is_judged(state: Pressure, shown: float | None):
    agent = an_agent()
    agent.board.set_pressure("gpu", state)
    assert value(agent, "resource_pressured", resource="gpu") == shown


@pytest.mark.parametrize(("claim", "shown"), [(None, None), (False, 0), (True, 1)])
def test_what_an_upstream_showed_of_its_unload_is_a_gauge(claim: bool | None, shown: float | None):
    agent = an_agent()
    assert value(agent, "reclaimed", upstream="llm") is None, "it was never asked"
    agent.unloaded = {"llm": (claim, "")}
    assert value(agent, "reclaimed", upstream="llm") == shown


def test_work_is_there_in_every_phase_also_when_there_is_none():
    agent = an_agent()
    phases = {
        phase: value(agent, "active_work", upstream="llm", phase=phase)
        for phase in ("forwarding", "tracking", "held")
    }
    assert phases == {"forwarding": 0, "tracking": 0, "held": 0}
    job = agent.ledger.reserve("llm", agent.clock.now(), borrower="ci")
    assert isinstance(job, Job)
    assert value(agent, "active_work", upstream="llm", phase="forwarding") == 1
    agent.ledger.hold(job.id, "the borrower left", agent.clock.now())
    assert value(agent, "active_work", upstream="llm", phase="forwarding") == 0
    assert value(agent, "active_work", upstream="llm", phase="held") == 1


def test_requests_are_counted_by_their_end_and_refusals_by_their_reason():
    agent = an_agent()
    counts = agent.counters["llm"] = UpstreamCounters()
    counts.admitted, counts.passed = 5, 2
    counts.outcomes[Outcome.CLIENT_CLOSED] += 1
    counts.refused[Reason.OWNER_ACTIVE] += 4
    assert value(agent, "admitted_total", upstream="llm") == 5
    assert value(agent, "passed_total", upstream="llm") == 2
    assert value(agent, "requests_total", upstream="llm", outcome="client_closed") == 1
    assert value(agent, "requests_total", upstream="llm", outcome="completed") == 0
    assert value(agent, "refusals_total", upstream="llm", reason="owner_active") == 4


def test_decisions_about_tokens_are_counted_allowed_and_denied():
    agent = an_agent()
    agent.host.auth.allowed["borrow"] += 3
    agent.host.auth.denied["admin"] += 1
    assert value(agent, "auth_total", scope="borrow", outcome="allowed") == 3
    assert value(agent, "auth_total", scope="admin", outcome="denied") == 1


def test_the_engines_counts_are_told_by_event():
    agent = an_agent()
    agent.engine = {"llm": Counters(accepted=9, evicted=1, turned_away=2, malformed=3)}
    shown = {
        event: value(agent, "connections_total", upstream="llm", event=event)
        for event in ("accepted", "evicted", "turned_away", "malformed")
    }
    assert shown == {"accepted": 9, "evicted": 1, "turned_away": 2, "malformed": 3}


def test_names_that_need_escaping_do_not_break_the_exposition():
    agent = an_agent()
    agent.host.auth.denied['a"b\\c\nd'] += 1
    assert value(agent, "auth_total", scope='a"b\\c\nd', outcome="denied") == 1
