from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standins.operator_world import EXTERNAL, SPEC, YEAR_S, World, lending_host, moment
from vacancy_operator.core.facts import Plan, Policy
from vacancy_operator.core.kinds import Names
from vacancy_operator.core.tokens import claims, decoded

NAMES = Names.of("box")


def made(world: World) -> set[str]:
    return {str(ref) for ref in world.objects}


def agent_json(world: World) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(world.objects[NAMES.config]["data"]["agent.json"])
    return found


def serving() -> World:
    """A host with an agent that does what it should."""
    world = World()
    world.settle(0.0)
    world.renew(5.0)
    world.report(Lendable="True")
    world.settle(5.0)
    return world


def test_an_external_host_gets_all_it_needs() -> None:
    world = World(lending_host(**EXTERNAL))
    world.settle()
    assert made(world) == {str(ref) for ref in NAMES.all}
    found = claims(decoded(world.objects[NAMES.join], "token"))
    assert found is not None
    assert found.secret_uid == world.objects[NAMES.join]["metadata"]["uid"]
    assert world.condition("Accepted") == ("True", "Valid")
    assert world.condition("AgentConnected") == ("Unknown", "NotJoined")
    assert world.condition("Ready") == ("False", "NotJoined")
    assert world.condition("Lendable") == ("", "")


def test_a_host_in_the_cluster_has_no_join_secret() -> None:
    world = World()
    world.settle()
    assert made(world) == {str(ref) for ref in NAMES.all if ref != NAMES.join}


def test_without_the_policy_a_host_in_the_cluster_has_no_identity() -> None:
    world = World(policy=Policy.MISSING)
    world.settle()
    assert made(world) == {str(ref) for ref in (NAMES.tokens, NAMES.config, NAMES.lease)}
    assert world.condition("Accepted") == ("False", "PolicyMissing")
    world.policy = Policy.IN_FORCE
    world.settle()
    assert set(NAMES.identity) <= set(world.objects)
    assert world.condition("Accepted") == ("True", "Valid")


def test_an_identity_is_withdrawn_when_the_policy_goes() -> None:
    world = World()
    world.settle()
    world.policy = Policy.UNKNOWN
    assert world.settle().empty
    assert set(NAMES.identity) <= set(world.objects)
    assert world.condition("Accepted") == ("True", "Valid")
    world.policy = Policy.MISSING
    world.settle()
    assert not set(NAMES.identity) & set(world.objects)


def test_without_the_policy_an_external_host_is_served() -> None:
    world = World(lending_host(**EXTERNAL), policy=Policy.MISSING)
    world.settle()
    assert made(world) == {str(ref) for ref in NAMES.all}


def test_a_host_that_moves_into_the_cluster_loses_its_join_secret() -> None:
    world = World(lending_host(**EXTERNAL))
    world.settle()
    world.host = lending_host(generation=2)
    world.settle()
    assert NAMES.join not in world.objects


def test_tokens_are_kept_and_made_anew_when_deleted() -> None:
    world = World()
    world.settle()
    first = agent_json(world)["tokens"]
    world.host = lending_host(generation=2, lending=False)
    world.settle()
    assert agent_json(world)["tokens"] == first
    del world.objects[NAMES.tokens]
    plan = world.decide(0.0, ("n" * 40, "e" * 40, "w" * 40))
    world.carry_out(plan)
    assert [item["kind"] for item in plan.apply] == ["Secret", "ConfigMap"]
    assert agent_json(world)["tokens"] != first


def test_a_wrong_spec_leaves_what_there_is() -> None:
    world = World()
    world.settle()
    before = dict(world.objects)
    world.host = lending_host(generation=2, schedule={"timeZone": "Mars/Base", "windows": []})
    world.settle()
    assert world.objects == before
    assert world.condition("Accepted") == ("False", "Invalid")


def test_a_name_that_is_taken_is_left_alone() -> None:
    world = World(taken=frozenset({NAMES.config}))
    world.settle()
    assert NAMES.config not in world.objects
    assert world.condition("Accepted") == ("False", "NameTaken")


def test_what_an_earlier_host_left_is_not_used() -> None:
    world = World(lending_host(**EXTERNAL))
    world.settle()
    old = {ref: item["metadata"]["uid"] for ref, item in world.objects.items()}
    old_token = decoded(world.objects[NAMES.tokens], "admin")
    world.host, world.sight = lending_host(uid="uid-2", **EXTERNAL), None
    plan = world.decide(0.0, ("n" * 40, "e" * 40, "w" * 40))
    assert len(plan.delete) == len(NAMES.all)
    world.carry_out(plan)
    world.settle()
    assert all(item["metadata"]["uid"] != old[ref] for ref, item in world.objects.items())
    assert decoded(world.objects[NAMES.tokens], "admin") != old_token


@pytest.mark.parametrize("gone", [None, {**lending_host()}])
def test_a_host_that_is_gone_or_going_needs_nothing(gone: dict[str, Any] | None) -> None:
    world = World()
    world.settle()
    if gone is not None:
        gone["metadata"]["deletionTimestamp"] = moment(1.0).text
    world.host = gone
    assert world.decide(2.0) == Plan()


def test_a_join_token_is_renewed_before_it_ends() -> None:
    world = World(lending_host(**EXTERNAL))
    plan = world.settle()
    first = decoded(world.objects[NAMES.join], "token")
    assert plan.wake_at == pytest.approx(moment(YEAR_S * 2 / 3).instant)
    assert world.settle(YEAR_S / 2).mint is None
    plan = world.decide(YEAR_S * 2 / 3 + 1)
    assert plan.mint is not None
    world.carry_out(plan, YEAR_S * 2 / 3 + 1)
    assert decoded(world.objects[NAMES.join], "token") != first


def test_an_agent_that_serves_is_ready() -> None:
    world = serving()
    assert world.condition("AgentConnected") == ("True", "LeaseRenewed")
    assert world.condition("Ready") == ("True", "Serving")
    assert world.condition("Lendable") == ("True", "Said")


def test_the_owner_does_not_make_a_host_unready() -> None:
    world = serving()
    world.report(Lendable="False")
    assert world.decide(6.0).empty


def test_an_edit_makes_the_host_unready_until_the_agent_runs_it() -> None:
    world = serving()
    assert world.host is not None
    status = world.host["status"]
    world.host = {**lending_host(generation=2, lending=False), "status": status}
    world.settle(6.0)
    assert world.condition("Ready") == ("False", "ConfigPending")
    world.report()
    world.settle(7.0)
    assert world.condition("Ready") == ("True", "Serving")


def test_a_lost_agent_is_asked_for_then_told() -> None:
    world = serving()
    assert world.decide(44.9).wake_at == moment(45.0).instant
    plan = world.decide(45.0)
    assert (plan.confirm_lease, plan.status) == (True, None)
    world.carry_out(plan, 45.0)
    plan = world.decide(45.0)
    assert [one.reason for one in plan.notices] == ["AgentLost"]
    world.settle(45.0)
    assert world.condition("AgentConnected") == ("Unknown", "AgentLost")
    assert world.condition("Lendable") == ("Unknown", "AgentLost")
    assert world.condition("Ready") == ("False", "AgentLost")
    assert world.host is not None
    assert world.host["status"]["lastSeen"] == moment(5.0).text
    assert world.decide(900.0).empty


def test_a_renewal_that_the_watch_missed_is_found_by_asking() -> None:
    world = serving()
    plan = world.decide(45.0)
    world.carry_out(plan, 45.0)
    world.renew(40.0)
    assert world.settle(45.0).wake_at == moment(80.0).instant
    assert world.condition("AgentConnected") == ("True", "LeaseRenewed")


def test_nobody_is_lost_while_the_operator_itself_is_cut_off() -> None:
    world = serving()
    world.contact_since = None
    assert world.decide(500.0).empty
    world.contact_since = moment(500.0).instant
    assert world.decide(530.0).empty
    assert world.decide(540.0).confirm_lease


def test_an_agent_that_returns_is_believed_and_its_own_word_comes_back() -> None:
    world = serving()
    world.settle(60.0)
    world.renew(70.0)
    world.settle(70.0)
    assert world.condition("AgentConnected") == ("True", "LeaseRenewed")
    assert world.condition("Ready") == ("True", "Serving")
    assert world.host is not None
    assert "lastSeen" not in world.host["status"]
    assert world.condition("Lendable") == ("Unknown", "AgentLost")
    world.report(Lendable="False")
    plan = world.settle(71.0)
    assert plan.empty
    assert world.condition("Lendable") == ("False", "Said")


def test_a_restarted_operator_neither_forgets_nor_invents() -> None:
    world = serving()
    world.settle(60.0)
    world.sight = None
    world.see(61.0)
    assert world.decide(62.0).empty
    assert world.decide(150.0).empty
    connected = serving()
    connected.sight = None
    connected.see(30.0)
    assert connected.decide(69.0).empty
    assert connected.decide(70.0).confirm_lease


EDITS = st.sampled_from(
    [
        "policy off",
        "policy on",
        "policy unknown",
        "external",
        "inside",
        "invalid",
        "edit",
        "recreate",
        "renew",
        "report",
        "lose tokens",
        "lose account",
        "lose join",
        "lose lease",
        "spoil role",
        "pass",
    ]
)


def edit(world: World, what: str, at: float) -> None:
    assert world.host is not None
    generation = world.host["metadata"]["generation"] + 1
    status = world.host.get("status", {})
    specs: dict[str, dict[str, Any]] = {
        "external": EXTERNAL,
        "inside": {},
        "edit": {
            "lending": bool(generation % 2),
            **{k: world.host["spec"][k] for k in EXTERNAL if k in world.host["spec"]},
        },
        "invalid": {"upstreams": [{**SPEC["upstreams"][0], "port": 0}]},
    }
    policies = {"policy off": Policy.MISSING, "policy on": Policy.IN_FORCE, "policy unknown": Policy.UNKNOWN}
    lost = {
        "lose tokens": NAMES.tokens,
        "lose account": NAMES.account,
        "lose join": NAMES.join,
        "lose lease": NAMES.lease,
    }
    if what in specs:
        world.host = {
            **lending_host(generation=generation, uid=world.host["metadata"]["uid"], **specs[what]),
            "status": status,
        }
    elif what in policies:
        world.policy = policies[what]
    elif what in lost:
        world.objects.pop(lost[what], None)
    elif what == "recreate":
        world.host, world.sight = lending_host(uid=f"uid-{at}"), None
        world.known.forget("box")
    elif what == "renew" and NAMES.lease in world.objects:
        world.renew(at)
    elif what == "report" and NAMES.config in world.objects:
        world.report(Lendable="True")
    elif what == "spoil role" and NAMES.role in world.objects:
        world.objects[NAMES.role] = {**world.objects[NAMES.role], "rules": []}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(EDITS, st.floats(0.0, 120.0)), max_size=12), st.data())
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(
    steps: list[tuple[str, float]], data: st.DataObject
) -> None:
    """Idempotent, and free of history: after any past, one state has one plan, and the plan leads to rest."""
    world, now = World(), 0.0
    for what, pause in steps:
        now += pause
        edit(world, what, now)
        if data.draw(st.booleans()):
            world.settle(now)
    assert world.decide(now) == world.decide(now)
    world.settle(now)
    writes = world.writes
    assert world.settle(now).empty
    assert world.writes == writes


@settings(max_examples=60, deadline=None)
@given(
    st.permutations(["edit", "policy on", "lose tokens", "spoil role", "lose account"]),
    st.lists(st.integers(0, 4)),
)
def test_the_order_of_events_does_not_matter(order: list[str], settled_after: list[int]) -> None:
    """However the same things happen, and however many of them are seen one by one, the end is the same."""
    ends = []
    for steps in (order, sorted(order)):
        world = World(lending_host(**EXTERNAL))
        world.settle(0.0)
        for index, what in enumerate(steps):
            edit(world, what, 1.0)
            if index in settled_after and steps is order:
                world.settle(1.0)
        world.settle(1.0)
        ends.append((without_uids(world), world.host and world.host["status"]))
    assert ends[0] == ends[1]


def without_uids(world: World) -> dict[str, Any]:
    """Everything but what a made object happens to be called inside, and its token, which says that."""
    return {
        str(ref): {
            key: value
            for key, value in item.items()
            if key not in {"metadata", "data" if ref == NAMES.join else ""}
        }
        for ref, item in world.objects.items()
    }
