from __future__ import annotations

from typing import Any

from standins.operator_api import HandClock
from standins.operator_world import lending_host
from vacancy_operator.core.kinds import CONFIG_MAP, LEASE, LENDING_HOST, SECRET, HostName, Names, Ref
from vacancy_operator.store import Store

BOX = HostName("box")
HOST = Ref(LENDING_HOST, "box")
NAMES = Names.of("box")


def item(name: str, at: int, **rest: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(at)}, **rest}


class Seen:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.changed: list[str] = []
        self.store = Store(self.clock, self.changed.append)

    def news(self) -> list[str]:
        found, self.changed[:] = list(self.changed), []
        return found


def test_an_event_is_told_once_and_an_older_state_never() -> None:
    seen = Seen()
    assert seen.store.put(CONFIG_MAP, item("lh-box-config", 5))
    assert not seen.store.put(CONFIG_MAP, item("lh-box-config", 5))
    assert not seen.store.put(CONFIG_MAP, item("lh-box-config", 4))
    assert seen.news() == ["box"]


def test_our_own_writes_are_no_news() -> None:
    seen = Seen()
    seen.store.put(SECRET, item("lh-box-tokens", 5), own=True)
    seen.store.put(SECRET, item("lh-box-tokens", 5))
    assert seen.store.remove(Ref(SECRET, "lh-box-tokens"), 5, own=True)
    assert seen.news() == []


def test_a_list_that_is_older_than_a_deletion_does_not_bring_the_object_back() -> None:
    seen = Seen()
    seen.store.put(LENDING_HOST, item("box", 5))
    assert seen.store.remove(HOST, 9)
    assert seen.store.take_list(LENDING_HOST, [item("box", 5)], 8) == 0
    assert seen.store.get(HOST) is None
    assert seen.store.put(LENDING_HOST, item("box", 10))
    assert not seen.store.remove(HOST, 9)
    assert seen.store.get(HOST) is not None


def test_a_list_finds_what_is_gone_but_not_what_is_younger() -> None:
    seen = Seen()
    seen.store.put(LENDING_HOST, item("old", 5))
    seen.store.put(LENDING_HOST, item("young", 20))
    seen.news()
    assert seen.store.take_list(LENDING_HOST, [item("new", 7)], 10) == 2
    assert sorted(seen.news()) == ["new", "old"]
    assert seen.store.hosts() == ["new", "young"]
    assert seen.store.host_count() == 2


def test_deletions_are_remembered_until_a_later_list() -> None:
    seen = Seen()
    seen.store.remove(HOST, 9)
    seen.store.take_list(LENDING_HOST, [], 8)
    assert not seen.store.put(LENDING_HOST, item("box", 8))
    seen.store.take_list(LENDING_HOST, [], 9)
    assert seen.store._gone == {}


def test_an_object_that_lost_its_label_is_told_as_deleted_and_can_be_met_again() -> None:
    seen = Seen()
    ref = Ref(SECRET, "lh-box-tokens")
    seen.store.put(SECRET, item(ref.name, 5))
    assert seen.store.remove(ref, 8)
    assert not seen.store.put(SECRET, item(ref.name, 7))
    assert seen.store.put(SECRET, item(ref.name, 8))
    assert seen.store.take_list(SECRET, [], 12) == 1
    assert seen.store.put(SECRET, item(ref.name, 9))


def test_managed_fields_are_not_kept() -> None:
    seen = Seen()
    made = item("box", 5)
    made["metadata"]["managedFields"] = [{"manager": "x"}]
    seen.store.put(LENDING_HOST, made)
    assert "managedFields" not in (seen.store.get(HOST) or {})["metadata"]


def test_what_belongs_to_a_host() -> None:
    seen = Seen()
    for ref in NAMES.all:
        seen.store.put(ref.kind, item(ref.name, 5))
    seen.store.put(SECRET, item("lh-other-tokens", 5))
    assert set(seen.store.owned(BOX)) == set(NAMES.all)
    assert seen.store.hosts() == ["box", "other"]


def lease(at: int, renewed: str, holder: str = "a") -> dict[str, Any]:
    return item(NAMES.lease.name, at, spec={"holderIdentity": holder, "renewTime": renewed})


def test_a_connected_agents_renewals_are_seen_and_not_news() -> None:
    seen = Seen()
    host = lending_host()
    host["status"] = {"conditions": [{"type": "AgentConnected", "status": "True"}]}
    seen.store.put(LENDING_HOST, host)
    seen.store.put(LEASE, lease(11, "1"))
    seen.news()
    seen.clock.seconds = 10.0
    seen.store.put(LEASE, lease(12, "2"))
    sight = seen.store.sight(BOX)
    assert sight is not None
    assert (sight.renewal, sight.at, sight.fresh) == ("a 2", seen.clock.now(), True)
    assert seen.news() == []
    seen.store.put(LEASE, lease(13, "2", holder=""))
    assert seen.news() == ["box"]


def test_a_renewal_of_an_agent_that_was_not_there_is_news() -> None:
    seen = Seen()
    seen.store.put(LENDING_HOST, lending_host())
    seen.store.put(LEASE, lease(11, "1"))
    seen.news()
    seen.store.put(LEASE, lease(12, "2"))
    assert seen.news() == ["box"]


def test_a_lease_that_lost_its_label_is_news() -> None:
    seen = Seen()
    host = lending_host()
    host["status"] = {"conditions": [{"type": "AgentConnected", "status": "True"}]}
    seen.store.put(LENDING_HOST, host)
    labelled = lease(11, "1")
    labelled["metadata"]["labels"] = {"x": "y"}
    seen.store.put(LEASE, labelled)
    seen.news()
    seen.store.put(LEASE, lease(12, "2"))
    assert seen.news() == ["box"]


def test_a_confirmation_is_kept_with_the_sight() -> None:
    seen = Seen()
    seen.store.confirm(BOX)
    assert seen.store.sight(BOX) is None
    seen.store.put(LEASE, lease(11, "1"))
    seen.clock.seconds = 50.0
    seen.store.confirm(BOX)
    sight = seen.store.sight(BOX)
    assert sight is not None
    assert sight.confirmed == seen.clock.now().instant


def test_names_that_are_taken_are_looked_at_again() -> None:
    seen = Seen()
    seen.store.put(LENDING_HOST, lending_host())
    seen.news()
    seen.store.take_name(BOX, NAMES.config)
    assert seen.store.taken(BOX) == {NAMES.config}
    seen.store.free_names()
    assert (seen.store.taken(BOX), seen.news()) == (frozenset(), ["box"])


def test_with_the_host_goes_what_was_known_of_its_agent() -> None:
    seen = Seen()
    seen.store.put(LENDING_HOST, lending_host())
    seen.store.put(LEASE, lease(11, "1"))
    seen.store.remove(HOST, 12)
    assert seen.store.sight(BOX) is None
