from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from standins.operator_api import DictApi, HandClock
from standins.operator_world import EXTERNAL, SPARE, lending_host
from vacancy_operator.api import ApiError
from vacancy_operator.core.configuration import Configurations
from vacancy_operator.core.facts import Instant, JoinAddress, Plan, Policy, Snapshot
from vacancy_operator.core.kinds import LENDING_HOST, HostName, Names, Ref
from vacancy_operator.core.reconcile import decide
from vacancy_operator.core.tokens import claims, decoded, encoded
from vacancy_operator.recorder import Recorder
from vacancy_operator.store import Store
from vacancy_operator.writer import AgainError, StandbyError, Writer, is_ours

if TYPE_CHECKING:
    from vacancy_operator.api import Api

BOX = HostName("box")
NAMES = Names.of("box")


class Rig:
    def __init__(self, host: dict[str, Any] | None = None) -> None:
        self.api, self.clock, self.active = DictApi(), HandClock(), True
        self.changed: list[str] = []
        self.store = Store(self.clock, self.changed.append)
        recorder = Recorder(cast("Api", self.api), self.clock, "op-1")
        self.writer = Writer(
            cast("Api", self.api), self.store, self.clock, recorder, lambda: self.active, 900
        )
        self.store.put(LENDING_HOST, self.api.put(LENDING_HOST, host or lending_host(**EXTERNAL)))

    def plan(self) -> Plan:
        snapshot = Snapshot(
            namespace="lending",
            host=self.store.get(Ref(LENDING_HOST, "box")),
            owned=self.store.owned(BOX),
            taken=self.store.taken(BOX),
            policy=Policy.IN_FORCE,
            sight=self.store.sight(BOX),
            contact_since=Instant(0.0),
            address=JoinAddress("https://10.0.0.1:6443", "CA"),
            spare=SPARE,
        )
        return decide(snapshot, self.clock.now(), Configurations())

    async def settle(self) -> None:
        for _ in range(8):
            plan = self.plan()
            if plan.empty:
                return
            try:
                await self.writer.carry_out(BOX, plan)
            except AgainError:
                continue
        raise AssertionError(f"not settled: {self.plan()}")


async def test_a_host_is_made_with_one_write_for_each_object() -> None:
    rig = Rig()
    await rig.settle()
    wanted = [
        *(f"apply {ref}" for ref in NAMES.all),
        f"apply {NAMES.join}",
        f"token {NAMES.account.name}",
        "apply LendingHost box/status",
        "create Event",
    ]
    assert sorted(rig.api.writes()) == sorted(wanted)
    found = claims(decoded(rig.api.objects[NAMES.join], "token"))
    assert found is not None
    assert found.secret_uid == rig.api.objects[NAMES.join]["metadata"]["uid"]


async def test_a_token_that_is_old_when_it_is_made_is_not_asked_for_again_at_once() -> None:
    rig = Rig()
    rig.api.token_age = -3600.0
    with pytest.raises(ApiError, match="clock"):
        await rig.settle()


async def test_a_secret_whose_label_was_taken_off_keeps_its_tokens() -> None:
    rig = Rig()
    old = {"borrow": "B" * 43, "read": "R" * 43, "admin": "A" * 43}
    owner = [
        {
            "kind": "LendingHost",
            "name": "box",
            "uid": rig.api.objects[Ref(LENDING_HOST, "box")]["metadata"]["uid"],
        }
    ]
    about = {"name": NAMES.tokens.name, "ownerReferences": owner}
    rig.api.put(NAMES.tokens.kind, {"kind": "Secret", "metadata": about, "data": encoded(old)})
    await rig.settle()
    made = rig.api.objects[NAMES.tokens]
    assert {key: decoded(made, key) for key in old} == old
    assert made["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "vacancy-operator"}


async def test_what_is_not_ours_is_left_alone_and_told() -> None:
    rig = Rig()
    rig.api.put(
        NAMES.config.kind, {"kind": "ConfigMap", "metadata": {"name": NAMES.config.name}, "data": {"x": "y"}}
    )
    await rig.settle()
    assert rig.api.objects[NAMES.config]["data"] == {"x": "y"}
    conditions = rig.api.objects[Ref(LENDING_HOST, "box")]["status"]["conditions"]
    assert next(one["reason"] for one in conditions if one["type"] == "Accepted") == "NameTaken"


async def test_the_status_is_told_even_where_an_object_is_refused() -> None:
    rig = Rig()
    rig.api.fail = lambda what: ApiError(403, "no") if "Role" in what and what.startswith("apply") else None
    with pytest.raises(ApiError):
        await rig.writer.carry_out(BOX, rig.plan())
    assert "apply LendingHost box/status" in rig.api.calls


async def test_a_host_that_is_another_one_by_now_gets_no_status_of_the_old() -> None:
    rig = Rig()
    plan = rig.plan()
    rig.api.put(LENDING_HOST, {**lending_host(generation=9, **EXTERNAL)})
    with pytest.raises(AgainError):
        await rig.writer.carry_out(BOX, plan)
    assert "status" not in rig.api.objects[Ref(LENDING_HOST, "box")]
    assert (rig.store.get(Ref(LENDING_HOST, "box")) or {})["metadata"]["generation"] == 9
    await rig.settle()


async def test_a_host_that_is_gone_by_now_is_forgotten() -> None:
    rig = Rig()
    plan = rig.plan()
    del rig.api.objects[Ref(LENDING_HOST, "box")]
    with pytest.raises(AgainError):
        await rig.writer.carry_out(BOX, plan)
    assert rig.store.get(Ref(LENDING_HOST, "box")) is None


async def test_a_standby_writes_nothing() -> None:
    rig = Rig()
    rig.active = False
    with pytest.raises(StandbyError):
        await rig.writer.carry_out(BOX, rig.plan())
    assert rig.api.writes() == []


async def test_an_object_of_an_earlier_host_goes_and_another_of_its_name_does_not() -> None:
    rig = Rig()
    await rig.settle()
    old = rig.plan()
    assert old.empty
    rig.store.remove(Ref(LENDING_HOST, "box"), 10**6)
    again = lending_host(**EXTERNAL, uid="uid-new")
    again["metadata"]["resourceVersion"] = str(10**6 + 1)
    rig.api.version = 10**6
    rig.api.objects.pop(Ref(LENDING_HOST, "box"))
    rig.store.put(LENDING_HOST, rig.api.put(LENDING_HOST, again))
    plan = rig.plan()
    assert len(plan.delete) == len(NAMES.all)
    other = rig.api.objects.pop(NAMES.role)
    rig.api.put(NAMES.role.kind, {**other, "metadata": {**other["metadata"], "uid": "made meanwhile"}})
    with pytest.raises(AgainError):
        await rig.writer.carry_out(BOX, plan)
    assert NAMES.role in rig.api.objects
    await rig.settle()


async def test_the_lease_is_asked_for_before_an_agent_is_called_lost() -> None:
    rig = Rig()
    await rig.settle()
    await rig.writer.carry_out(BOX, Plan(confirm_lease=True))
    sight = rig.store.sight(BOX)
    assert rig.api.calls[-1] == f"get {NAMES.lease}"
    assert sight is not None
    assert sight.confirmed == rig.clock.now().instant


def test_what_is_ours() -> None:
    label = {"labels": {"app.kubernetes.io/managed-by": "vacancy-operator"}}
    owner = {"ownerReferences": [{"kind": "LendingHost", "name": "box"}]}
    assert is_ours({"metadata": label}, BOX)
    assert is_ours({"metadata": owner}, BOX)
    assert not is_ours({"metadata": {"labels": None}}, BOX)
    assert not is_ours({"metadata": owner}, HostName("other"))
