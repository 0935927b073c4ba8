"""`/status` has exactly the contract's shape, and what is not known is null in it, never zero."""

from __future__ import annotations

from typing import Any

import pytest

from standins.hosts import cpu, host, memory, resource, seen, upstream
from standins.running import StillAgent
from vacancy_agent.admin import report
from vacancy_agent.core.board import Pressure, PressureView
from vacancy_agent.core.conditions import config_finding
from vacancy_agent.core.effects import PublishPhase, ReclaimPhase
from vacancy_agent.core.facts import (
    CpuCapacity,
    Evidence,
    Instant,
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
from vacancy_agent.core.settings import LendingSettings, OwnerScope, ResourceType
from vacancy_agent.core.shown import ModelShown, ModelsShown
from vacancy_agent.store.sqlite import Usage
from vacancy_api.status import AgentStatus

RESOURCES = (
    resource("gpu"),
    resource("ram", ResourceType.MEMORY),
    resource("cpu", ResourceType.CPU),
)
GPU_LIMITED = resource("gpu", min_free=MiB(800))
CPU_LIMITED = resource("cpu", ResourceType.CPU, max_utilization=Percent(80.0))
UPSTREAMS = (upstream("llm", ("gpu", "ram")), upstream("aside", ("cpu",), owner_scope=OwnerScope.RESOURCE))


def an_agent(**more: Any) -> StillAgent:
    return StillAgent(host(UPSTREAMS, RESOURCES, **more.pop("settings", {})), **more)


def document(agent: StillAgent, unreachable: dict[str, str | None] | None = None) -> dict[str, Any]:
    return report.document(agent, unreachable or {})


def one(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)


def a_job(agent: StillAgent, name: str = "llm", borrower: str = "ci", model: str | None = "m") -> Job:
    job = agent.ledger.reserve(name, agent.clock.now(), borrower=borrower, model=model)
    assert isinstance(job, Job)
    return job


def assert_contract(agent: StillAgent) -> None:
    """The agent's part is what the contract's model would write, key by key; the rest is `interfaces.md`."""
    whole = document(agent)
    assert AgentStatus.model_validate(whole["agent"]).model_dump(by_alias=True) == whole["agent"]
    assert set(whole) == {"agent", "owner", "conditions", "debugUntil", "switchedOff", "upstreams"}
    assert set(whole["owner"]) == {
        *("presence", "why", "sampleAges", "loads", "work", "usageToday", "vetoExempt")
    }
    for work in whole["owner"]["work"]:
        assert set(work) == {"id", "borrower", "upstream", "model", "phase", "since"}
    for used in whole["owner"]["usageToday"]:
        assert set(used) == {"borrower", "requests", "seconds", "tokens"}
    for condition in whole["conditions"]:
        assert set(condition) == {"type", "status", "reason", "message", "since"}
    assert set(whole["upstreams"]) == {"llm", "aside"}
    for more in whole["upstreams"].values():
        assert set(more) == {"residency", "reclaim", "server"}


def test_a_host_that_was_never_read_has_the_contracts_shape():
    assert_contract(an_agent(vacant=False))


def test_a_host_that_works_has_the_contracts_shape():
    agent = an_agent()
    agent.unbound = {"aside"}
    agent.used = {"ci": Usage(3, 1.25)}
    agent.conditions.set(config_finding(["spec.x: is wrong"]), agent.clock.wall())
    agent.published["llm"] = PublishPhase("llm", ReclaimPhase.WAITING, (), agent.clock.now())
    agent.board.set_pressure("gpu", Pressure.BUILDING)
    agent.ledger.hold(a_job(agent).id, "the borrower left", agent.clock.now())
    a_job(agent, "aside")
    assert_contract(agent)


def test_what_came_of_an_unload_is_shown_beside_the_reclaim():
    agent = an_agent()
    agent.published["llm"] = PublishPhase("llm", ReclaimPhase.PROCEEDING, (), agent.clock.now())
    assert "unload" not in document(agent)["upstreams"]["llm"]["reclaim"], "it was never asked to"
    agent.unloaded = {"llm": (False, "it still lists m:latest")}
    shown = document(agent)["upstreams"]["llm"]["reclaim"]["unload"]
    assert shown == {"shown": False, "why": "it still lists m:latest"}


@pytest.mark.parametrize("state", Pressure)
def test_every_state_of_pressure_is_one_of_the_contract(state: Pressure):
    agent = an_agent()
    agent.board.set_pressure("gpu", state)
    assert_contract(agent)
    shown = one(document(agent)["agent"]["resources"], "gpu")["pressure"]
    assert shown["state"] == ("clear" if state is Pressure.BUILDING else state.value)
    assert (shown["thresholdPercent"], shown["calibratedMinutes"]) == (None, None)


def test_the_owners_load_is_for_the_owner_and_its_threshold_for_all():
    agent = an_agent()
    view = PressureView("calibrating", Percent(11.5), 3.2, Percent(7.0), "still being learned")
    agent.board.set_pressure("gpu", Pressure.CALIBRATING, view)
    whole = document(agent)
    assert one(whole["agent"]["resources"], "gpu")["pressure"] == {
        "state": "calibrating",
        "thresholdPercent": 11.5,
        "calibratedMinutes": 3.2,
    }
    assert whole["owner"]["loads"] == {"gpu": {"percent": 7.0, "why": "still being learned"}}


def test_pressure_is_a_matter_of_gpus():
    resources = document(an_agent())["agent"]["resources"]
    assert [item["pressure"] is None for item in resources] == [False, True, True]


def test_what_was_never_read_is_null():
    whole = document(an_agent(vacant=False))
    for item in whole["agent"]["resources"]:
        assert (item["state"], item["reason"]) == ("unknown", "not taken yet")
        assert (item["freeMiB"], item["totalMiB"], item["utilizationPercent"]) == (None, None, None)
    assert whole["agent"]["summary"]["freeVRAM"] is None
    assert (whole["owner"]["presence"], whole["owner"]["why"]) == ("unknown", "not taken yet")
    assert whole["owner"]["sampleAges"] == {"gpu": None, "ram": None, "cpu": None, "presence": None}


def test_what_was_read_is_shown_with_its_age():
    agent = an_agent()
    agent.board.set_capacity("ram", Ready(MemoryCapacity(MiB(900), MiB(1000)), agent.clock.now()))
    agent.clock.advance(2.5)
    whole = document(agent)
    ram = one(whole["agent"]["resources"], "ram")
    assert (ram["state"], ram["reason"], ram["freeMiB"], ram["totalMiB"]) == ("ready", None, 900, 1000)
    assert ram["utilizationPercent"] is None
    assert one(whole["agent"]["resources"], "cpu")["utilizationPercent"] == 5.0
    assert whole["owner"]["sampleAges"] == {"gpu": 2.5, "ram": 2.5, "cpu": 2.5, "presence": 2.5}
    assert (whole["owner"]["presence"], whole["owner"]["why"]) == ("absent", "a test saw absent")


def test_a_reading_that_grew_old_is_stale_without_anybody_saying_so():
    agent = an_agent()
    agent.clock.advance(agent.settings.sampling.stale_after)
    assert {item["state"] for item in document(agent)["agent"]["resources"]} == {"ready"}
    agent.clock.advance(0.1)
    shown = document(agent)["agent"]["resources"]
    assert {(item["state"], item["reason"]) for item in shown} == {("stale", "the last reading is too old")}
    assert document(agent)["agent"]["summary"]["freeVRAM"] is None
    owner = document(agent)["owner"]
    assert (owner["presence"], owner["why"]) == ("unknown", "the last presence sample is too old")


def test_a_failed_reading_says_why_within_the_contracts_length():
    agent = an_agent()
    agent.board.set_capacity("gpu", Unknown("nvidia-smi: " + "x" * 5000))
    agent.board.set_capacity("ram", Stale(memory(), agent.clock.now(), "the machine slept"))
    shown = document(agent)["agent"]["resources"]
    assert one(shown, "gpu")["reason"] == ("nvidia-smi: " + "x" * 5000)[:1024]
    assert (one(shown, "ram")["state"], one(shown, "ram")["reason"]) == ("stale", "the machine slept")
    assert_contract(agent)


def test_free_video_memory_is_that_of_all_gpus_or_unknown():
    cards = (resource("gpu"), resource("gpu1"), resource("ram", ResourceType.MEMORY))
    agent = StillAgent(host((upstream("llm", ("gpu", "gpu1")),), cards))
    agent.board.set_capacity("gpu", Ready(memory(free=1024), Instant(agent.clock.now())))
    agent.board.set_capacity("gpu1", Ready(memory(free=512), Instant(agent.clock.now())))
    assert document(agent)["agent"]["summary"]["freeVRAM"] == "1.5Gi"
    agent.board.set_capacity("gpu1", Unknown("it fell off the bus"))
    assert document(agent)["agent"]["summary"]["freeVRAM"] is None


def test_a_host_without_a_gpu_has_no_video_memory_to_show():
    agent = StillAgent(host((upstream("llm", ("ram",)),), (resource("ram", ResourceType.MEMORY),)))
    assert document(agent)["agent"]["summary"]["freeVRAM"] is None


def test_a_switched_off_resource_says_where_it_was_switched():
    agent = an_agent()
    agent.board.set_resource_enabled("ram", False)
    ram = one(document(agent)["agent"]["resources"], "ram")
    assert (ram["enabled"], ram["reason"]) == (False, "switched off at this machine")
    settings = host((upstream("llm", ("ram",)),), (resource("ram", ResourceType.MEMORY, enabled=False),))
    ram = one(document(StillAgent(settings))["agent"]["resources"], "ram")
    assert (ram["enabled"], ram["reason"]) == (False, "switched off in the specification")


def test_an_upstream_says_why_it_is_not_lent_and_only_then():
    agent = an_agent()
    llm = one(document(agent)["agent"]["upstreams"], "llm")
    assert (llm["lendable"], llm["reason"], llm["bound"]) == (True, None, True)
    agent.board.set_presence(seen(Evidence.PRESENT, agent.clock.now()), agent.clock.now())
    shown = document(agent)["agent"]["upstreams"]
    assert (one(shown, "llm")["lendable"], one(shown, "llm")["reason"]) == (False, "owner_active")
    assert (one(shown, "aside")["lendable"], one(shown, "aside")["reason"]) == (True, None)
    assert document(agent)["owner"]["vetoExempt"] == ["aside"]


def test_an_upstream_whose_port_is_not_bound_lends_nothing_and_says_so():
    agent = an_agent()
    agent.unbound = {"llm"}
    llm = one(document(agent)["agent"]["upstreams"], "llm")
    assert (llm["bound"], llm["lendable"], llm["reason"]) == (False, False, "upstream_unavailable")


def test_work_is_counted_by_phase_and_told_to_the_owner_alone():
    agent = an_agent()
    held = a_job(agent, borrower="ci", model=None)
    agent.ledger.hold(held.id, "the borrower left", agent.clock.now())
    agent.clock.advance(30)
    a_job(agent, "aside", borrower="lab", model="qwen")
    agent.clock.advance(5)
    whole = document(agent)
    llm, aside = (one(whole["agent"]["upstreams"], name) for name in ("llm", "aside"))
    assert (llm["active"], llm["held"]) == (0, 1)
    assert (aside["active"], aside["held"]) == (1, 0)
    assert whole["agent"]["summary"]["active"] == 2
    assert whole["owner"]["work"] == [
        {
            "id": "1",
            "borrower": "ci",
            "upstream": "llm",
            "model": None,
            "phase": "held",
            "since": "2023-11-14T22:13:20Z",
        },
        {
            "id": "2",
            "borrower": "lab",
            "upstream": "aside",
            "model": "qwen",
            "phase": "forwarding",
            "since": "2023-11-14T22:13:50Z",
        },
    ]
    assert "qwen" not in str(whole["agent"])
    assert "lab" not in str(whole["agent"])


def test_a_hold_says_why():
    agent = an_agent()
    job = a_job(agent)
    agent.ledger.hold(job.id, "the borrower left", agent.clock.now())
    shown = report.hold(job, agent.clock.now(), agent.clock.wall())
    assert shown["why"] == "the borrower left"
    assert set(shown) == {"id", "borrower", "upstream", "model", "phase", "since", "why"}


@pytest.mark.parametrize(
    ("lending", "local", "shown"),
    [
        (LendingSettings(), None, (True, None, None)),
        (LendingSettings(enabled=False), None, (False, None, "spec")),
        (LendingSettings(windows=()), None, (False, None, "schedule")),
        (
            LendingSettings(paused_until=WallTime(1_700_000_060.0)),
            None,
            (False, "2023-11-14T22:14:20Z", "cluster"),
        ),
        (LendingSettings(), LocalPause(None), (False, None, "local")),
        (
            LendingSettings(),
            LocalPause(WallTime(1_700_003_600.0)),
            (False, "2023-11-14T23:13:20Z", "local"),
        ),
    ],
)
def test_lending_says_until_when_it_is_off_and_by_whose_word(
    lending: LendingSettings, local: LocalPause | None, shown: tuple[object, ...]
):
    agent = an_agent(settings={"lending": lending})
    agent.board.set_local_pause(local)
    answer = document(agent)["agent"]["lending"]
    assert (answer["allowed"], answer["pausedUntil"], answer["by"]) == shown
    assert_contract(agent)
    assert document(agent)["switchedOff"] is False


def test_a_switch_that_is_off_is_told_from_a_pause():
    agent = an_agent()
    agent.board.set_local_pause(LocalPause(None, is_switch=True))
    assert document(agent)["switchedOff"] is True
    assert document(agent)["agent"]["lending"]["by"] == "local"


def test_models_of_several_servers_fit_into_the_contract_together():
    agent = an_agent()
    for name in ("llm", "aside"):
        rows = tuple(ModelShown(f"{name}-{n}:latest", "d", 1, None, 1, 1) for n in range(40))
        agent.board.set_residency(name, Ready(ModelsShown(rows), agent.clock.now()))
    assert len(document(agent)["agent"]["summary"]["models"]) == report.MOST_MODELS
    assert_contract(agent)


def test_a_reclaim_under_way_is_shown_with_its_beginning():
    agent = an_agent()
    first = agent.clock.now()
    agent.published["llm"] = PublishPhase("llm", ReclaimPhase.WAITING, (first,), first)
    agent.clock.advance(60)
    shown = document(agent)["upstreams"]
    began = {"phase": "waiting", "since": "2023-11-14T22:13:20Z"}
    assert shown["llm"]["reclaim"] == began
    second = agent.clock.now()
    agent.published["llm"] = PublishPhase("llm", ReclaimPhase.WAITING, (first, second), second)
    assert document(agent)["upstreams"]["llm"]["reclaim"] == began, "the second edge joined the wait"
    agent.published["llm"] = PublishPhase("llm", ReclaimPhase.PROCEEDING, (first, second), second)
    assert document(agent)["upstreams"]["llm"]["reclaim"]["since"] == "2023-11-14T22:14:20Z"
    assert shown["aside"]["reclaim"] is None


def test_a_server_that_was_not_looked_for_is_unknown():
    agent = an_agent()
    shown = document(agent, {"llm": None})["upstreams"]
    assert (shown["llm"]["server"]["reachable"], shown["aside"]["server"]["reachable"]) == (True, None)
    shown = document(agent, {"llm": "connection refused", "aside": None})["upstreams"]
    assert (shown["llm"]["server"]["reachable"], shown["llm"]["server"]["why"]) == (
        False,
        "connection refused",
    )
    assert document(agent, {"llm": "no"})["agent"] == document(agent)["agent"], "it decides nothing"


def test_usage_is_sorted_and_tokens_are_unknown_not_zero():
    agent = an_agent()
    agent.used = {"lab": Usage(1, 0.12345), "ci": Usage(2, 5.0)}
    assert document(agent)["owner"]["usageToday"] == [
        {"borrower": "ci", "requests": 2, "seconds": 5.0, "tokens": None},
        {"borrower": "lab", "requests": 1, "seconds": 0.123, "tokens": None},
    ]


def test_a_resource_that_can_be_read_and_is_not_lent_says_why():
    agent = StillAgent(host((upstream("llm", ("gpu", "cpu")),), (GPU_LIMITED, CPU_LIMITED)))
    agent.board.set_capacity("gpu", Ready(MemoryCapacity(MiB(900), MiB(1000)), agent.clock.now()))

    def why(name: str) -> Any:
        return one(document(agent)["agent"]["resources"], name)["reason"]

    assert (why("gpu"), why("cpu")) == (None, None)
    for state, words in (
        (Pressure.ENGAGED, "own work"),
        (Pressure.UNKNOWN, "not known"),
        (Pressure.CALIBRATING, "learned"),
    ):
        agent.board.set_pressure("gpu", state)
        assert words in why("gpu")
    agent.board.set_pressure("gpu", Pressure.BUILDING)
    assert why("gpu") is None
    agent.board.set_capacity("gpu", Ready(MemoryCapacity(MiB(700), MiB(1000)), agent.clock.now()))
    agent.board.set_capacity("cpu", Ready(CpuCapacity(Percent(90.0)), agent.clock.now()))
    assert "minFreeMiB" in why("gpu")
    assert "maxUtilizationPercent" in why("cpu")


def test_a_resource_named_presence_does_not_hide_the_owners_presence():
    settings = host((upstream("llm", ("presence",)),), (resource("presence", ResourceType.CPU),))
    agent = StillAgent(settings)
    agent.clock.advance(3)
    agent.board.set_capacity("presence", Ready(cpu(), agent.clock.now()))
    assert document(agent)["owner"]["sampleAges"]["presence"] == 3.0
