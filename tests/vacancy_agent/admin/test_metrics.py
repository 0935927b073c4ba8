"""Names and meanings of the metrics; above all, that what is not known has no sample."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from standins.hosts import host, memory, resource, seen, upstream
from standins.running import StillAgent
from vacancy_agent.admin import metrics
from vacancy_agent.core.board import Pressure, PressureView
from vacancy_agent.core.conditions import config_finding, reclaimed_finding
from vacancy_agent.core.effects import PublishPhase, ReclaimPhase
from vacancy_agent.core.facts import (
    CpuCapacity,
    Evidence,
    MemoryCapacity,
    MiB,
    Percent,
    Ready,
    Stale,
    Unknown,
    WallTime,
)
from vacancy_agent.core.job import Job
from vacancy_agent.core.lending import LocalPause
from vacancy_agent.core.settings import ResourceType
from vacancy_agent.proxy.counters import Outcome, UpstreamCounters
from vacancy_agent.upstreams.listener_state import ListenerState
from vacancy_api.reasons import Reason
from vacancy_http import Counters

if TYPE_CHECKING:
    from collections.abc import Mapping

MIB = 1 << 20
ROOT = Path(__file__).parents[3]
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
    agent.engine["llm"].tunnels = 4
    assert value(agent, "tunnels", upstream="llm") == 4


def test_every_scope_has_both_counts_from_the_start():
    shown = {labels for name, labels in samples(an_agent()) if name == "vacancy_auth_total"}
    assert shown == {
        frozenset({("scope", scope), ("outcome", outcome)})
        for scope in ("borrow", "read", "admin", "relay")
        for outcome in ("allowed", "denied")
    }


def test_what_keeps_lending_off_is_named_with_its_end():
    agent = an_agent()
    assert value(agent, "lending_held_off", by="local") == 0
    assert value(agent, "lending_resumes_seconds") is None
    agent.board.set_local_pause(LocalPause(WallTime(agent.clock.wall() + 90)))
    assert value(agent, "lending_held_off", by="local") == 1
    assert value(agent, "lending_held_off", by="schedule") == 0
    assert value(agent, "lending_resumes_seconds") == 90
    agent.board.set_local_pause(LocalPause(None))
    assert value(agent, "lending_resumes_seconds") is None


def test_presence_is_one_of_its_values_while_it_is_known():
    agent = an_agent()
    shown = {one: value(agent, "presence", evidence=one.value) for one in Evidence}
    assert {one for one, number in shown.items() if number} == {Evidence.ABSENT}
    agent.clock.advance(agent.settings.sampling.stale_after + 0.1)
    assert value(agent, "presence", evidence="absent") is None, "too old to say anything about now"
    agent.board.set_presence(seen(Evidence.ABSENT, agent.clock.now()), agent.clock.now())
    assert value(agent, "presence", evidence="absent") == 1
    agent.board.set_presence(Unknown("no bus"), agent.clock.now())
    assert value(agent, "presence", evidence="absent") is None


def test_a_condition_is_true_or_false_or_not_there():
    agent = an_agent()
    agent.conditions.set(config_finding([]), agent.clock.wall())
    assert value(agent, "condition", type="ConfigApplied") == 1
    agent.conditions.set(config_finding(["spec: wrong"]), agent.clock.wall())
    assert value(agent, "condition", type="ConfigApplied") == 0
    finding = reclaimed_finding({"llm": None})
    assert finding is not None
    agent.conditions.set(finding, agent.clock.wall())
    assert value(agent, "condition", type="Reclaimed") is None


def test_probes_that_hang_are_counted():
    agent = an_agent()
    assert value(agent, "probes_abandoned_total") == 0
    agent.abandoned_probes = 2
    assert value(agent, "probes_abandoned_total") == 2


def test_an_agent_that_is_not_ready():
    agent = an_agent()
    assert value(agent, "ready") == 1
    agent.missing = ["presence has no fresh sample"]
    assert value(agent, "ready") == 0
    assert value(agent, "agent_info", version="0.1.0") == 1


def test_the_figures_of_pressure_are_there_as_far_as_they_are_known():
    agent = an_agent()
    names = (
        "resource_owner_load_pct",
        "resource_pressure_threshold_pct",
        "resource_pressure_observed_minutes",
    )
    agent.board.pressure_view["gpu"] = PressureView("clear", Percent(25.0), 10.0, Percent(3.0))
    assert [value(agent, name, resource="gpu") for name in names] == [3.0, 25.0, 10.0]
    agent.board.pressure_view["gpu"] = PressureView("unknown", why="no answer")
    assert [value(agent, name, resource="gpu") for name in names] == [None, None, None]


def test_where_a_server_listens():
    agent = an_agent()
    assert value(agent, "server_listener", upstream="llm", state="unknown") == 1
    agent.servers["llm"] = ListenerState.LISTENS_ON_NETWORK
    assert value(agent, "server_listener", upstream="llm", state="listens_on_network") == 1
    assert value(agent, "server_listener", upstream="llm", state="unknown") == 0


def test_the_oldest_hold_has_an_age_and_what_freed_holds_is_counted():
    agent = an_agent()
    assert value(agent, "hold_oldest_seconds", upstream="llm") is None
    job = agent.ledger.reserve("llm", agent.clock.now(), borrower="ci")
    assert isinstance(job, Job)
    agent.clock.advance(5)
    agent.ledger.hold(job.id, "the borrower left", agent.clock.now())
    agent.clock.advance(2)
    assert value(agent, "hold_oldest_seconds", upstream="llm") == 7
    agent.events("freed", upstream="llm", job=job.id, by="administrator", why="asked")
    assert value(agent, "holds_freed_total", upstream="llm", by="administrator") == 1
    assert value(agent, "holds_freed_total", upstream="llm", by="proof") == 0


def test_reclaims_and_unloads_are_shown_as_they_stand_and_counted():
    agent = an_agent()
    assert value(agent, "reclaim_phase", upstream="llm", phase="waiting") == 0
    agent.published["llm"] = PublishPhase("llm", ReclaimPhase.PROCEEDING, (), agent.clock.now())
    agent.events("reclaim", upstream="llm", phase="proceeding", edges=1)
    agent.events("reclaimed", upstream="llm", reason="UnloadNotConfirmed")
    agent.unloaded["llm"] = (False, "it still lists the model")
    assert value(agent, "reclaim_phase", upstream="llm", phase="proceeding") == 1
    assert value(agent, "reclaims_total", upstream="llm", phase="proceeding") == 1
    assert value(agent, "unloads_total", upstream="llm", result="UnloadNotConfirmed") == 1
    assert value(agent, "reclaimed", upstream="llm") == 0


def test_the_page_lists_what_there_is_with_kind_labels_and_meaning():
    page = (ROOT / "docs" / "metrics.md").read_text()
    rows = [
        f"| `{one.name}` | {one.kind} | {', '.join(f'`{label}`' for label in one.labels)} | {one.about} |"
        for one in metrics.families(an_agent())
    ]
    assert [row for row in rows if row not in page] == []
    assert len(re.findall(r"^\| `vacancy_", page, re.MULTILINE)) == len(rows)
