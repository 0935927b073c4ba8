"""What the operator knows of the cluster, and who has to be looked at when it changes.

Invariant: a state never goes back to an older one, whichever of watch, full list and our own writes told it
first. A full list that was read before a deletion, and arrives after it, would otherwise bring the object
back; that is why deletions are remembered until a later list. One loop owns the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_api.reasons import ConditionType
from vacancy_operator.core import connection
from vacancy_operator.core.conditions import live_conditions
from vacancy_operator.core.kinds import (
    KINDS,
    LEASE,
    LENDING_HOST,
    HostName,
    Kind,
    Names,
    Object,
    Ref,
    host_of,
    metadata,
    version,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from vacancy_operator.clock import Clock
    from vacancy_operator.core.facts import Sight


class Store:
    """Objects by kind and name; `changed` is told of each host that has to be looked at."""

    def __init__(self, clock: Clock, changed: Callable[[HostName], None]) -> None:
        self._clock = clock
        self._changed = changed
        self._objects: dict[Kind, dict[str, Object]] = {kind: {} for kind in KINDS}
        self._gone: dict[Ref, int] = {}
        self._taken: dict[HostName, set[Ref]] = {}
        self._sights: dict[HostName, Sight] = {}

    def get(self, ref: Ref) -> Object | None:
        """An object as it was last seen."""
        return self._objects[ref.kind].get(ref.name)

    def hosts(self) -> list[HostName]:
        """Names of all hosts, and of those that are gone and whose objects are not."""
        named = (host_of(Ref(kind, name)) for kind, items in self._objects.items() for name in items)
        return sorted({host for host in named if host is not None})

    def host_count(self) -> int:
        """How many LendingHosts there are."""
        return len(self._objects[LENDING_HOST])

    def owned(self, host: HostName) -> dict[Ref, Object]:
        """What exists of the names that belong to a host."""
        found = ((ref, self.get(ref)) for ref in Names.of(host).all)
        return {ref: item for ref, item in found if item is not None}

    def taken(self, host: HostName) -> frozenset[Ref]:
        """Names of a host that something else bears."""
        return frozenset(self._taken.get(host, ()))

    def sight(self, host: HostName) -> Sight | None:
        """What was seen of a host's Lease."""
        return self._sights.get(host)

    def put(self, kind: Kind, item: Object, *, own: bool = False) -> bool:
        """An object as it is now; `own`: after a write of ours, which is no news. False: known already."""
        ref = Ref(kind, str(metadata(item)["name"]))
        before = self.get(ref)
        at = version(item)
        if at < self._gone.get(ref, -1) or (before is not None and at <= version(before)):
            return False
        kept = _without_managed_fields(item)
        self._objects[kind][ref.name] = kept
        self._observe(ref, kept)
        host = host_of(ref)
        if host is not None and not own and not self._is_mere_renewal(host, ref, before, kept):
            self._changed(host)
        return True

    def remove(self, ref: Ref, at: int, *, own: bool = False) -> bool:
        """An object is gone as of a version. False: that is known, or it has come back since.

        An object that has that very version is there all the same: it lost the label by which it was watched.
        """
        before = self.get(ref)
        if before is not None and version(before) > at:
            return False
        self._gone[ref] = max(at, self._gone.get(ref, -1))
        if before is None:
            return False
        del self._objects[ref.kind][ref.name]
        host = host_of(ref)
        if host is not None:
            self._forget(ref, host)
            if not own:
                self._changed(host)
        return True

    def take_list(self, kind: Kind, items: Iterable[Object], at: int) -> int:
        """Everything of a kind as of a version; how much of it was news."""
        listed = {str(metadata(item)["name"]): item for item in items}
        news = sum(self.put(kind, item) for item in listed.values())
        lost = [name for name in self._objects[kind] if name not in listed]
        news += sum(self._lose(Ref(kind, name), at) for name in lost)
        old = [ref for ref, gone_at in self._gone.items() if ref.kind == kind and gone_at <= at]
        for ref in old:
            del self._gone[ref]
        return news

    def take_name(self, host: HostName, ref: Ref) -> None:
        """Something that is not ours bears this name."""
        self._taken.setdefault(host, set()).add(ref)

    def free_names(self) -> None:
        """Look again at every name that was taken."""
        hosts, self._taken = list(self._taken), {}
        for host in hosts:
            self._changed(host)

    def confirm(self, host: HostName) -> None:
        """The API server was asked for the host's Lease, and what it said is in the store."""
        sight = connection.confirmed(self._sights.get(host), self._clock.now())
        if sight is not None:
            self._sights[host] = sight

    def _lose(self, ref: Ref, at: int) -> bool:
        """A list of that version does not have it; when it went is not known."""
        known = version(self._objects[ref.kind][ref.name])
        return known <= at and self.remove(ref, known + 1)

    def _observe(self, ref: Ref, item: Object) -> None:
        host = host_of(ref)
        if ref.kind == LEASE and host is not None:
            seen = connection.observe(self._sights.get(host), item, self._clock.now())
            if seen is not None:
                self._sights[host] = seen

    def _forget(self, ref: Ref, host: HostName) -> None:
        if ref.kind == LENDING_HOST:
            self._taken.pop(host, None)
            self._sights.pop(host, None)

    def _is_mere_renewal(self, host: HostName, ref: Ref, before: Object | None, item: Object) -> bool:
        """A connected agent's Lease, renewed: thousands of these say nothing new."""
        if ref.kind != LEASE or before is None or not (item.get("spec") or {}).get("holderIdentity"):
            return False
        known = live_conditions(self.get(Ref(LENDING_HOST, host)) or {}).get(
            ConditionType.AGENT_CONNECTED, {}
        )
        same = all(
            metadata(before).get(key) == metadata(item).get(key) for key in ("labels", "ownerReferences")
        )
        return known.get("status") == "True" and same


def _without_managed_fields(item: Object) -> Object:
    about = {key: value for key, value in metadata(item).items() if key != "managedFields"}
    return {**item, "metadata": about}
