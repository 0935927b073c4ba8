"""What is to be done about one host: `decide(snapshot, now)`.

Invariant: the plan depends on nothing but its arguments, so it does not matter in which order events came,
how many were missed, or how often it is asked; carried out, it leads to an empty plan. The failure that this
prevents is an operator whose objects depend on its history.

Steps:
1. a host that is gone or going needs nothing: its objects have it as their owner and go with it
2. objects of an earlier host of this name go first: their tokens must not open this one
3. the tokens are what they were; a missing one is made
4. configuration, identity, Lease and join Secret are built; what is live and the same is left alone
5. an in-cluster host has an identity only while the admission policy is in force; else it is withdrawn
6. an external host's token is asked for when it is missing, foreign or two thirds through its life
7. the status is built; it is written only if it says something new
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_operator.core import conditions, objects
from vacancy_operator.core.configuration import Configurations, Configured, Unacceptable
from vacancy_operator.core.connection import Connection, Judged, judge, last_seen
from vacancy_operator.core.difference import differs
from vacancy_operator.core.facts import Draft, Instant, Mint, Plan, Policy, Verdict
from vacancy_operator.core.kinds import Names, Ref, metadata, uid
from vacancy_operator.core.tokens import claims, decoded, host_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vacancy_operator.core.facts import Now, Snapshot
    from vacancy_operator.core.kinds import Object


def decide(snapshot: Snapshot, now: Now, known: Configurations) -> Plan:
    """The plan for one host. `known` only saves work: it never changes the plan."""
    host = snapshot.host
    if host is None or metadata(host).get("deletionTimestamp"):  # 1
        return Plan()
    names = Names.of(str(metadata(host)["name"]))
    stale = {ref for ref, item in snapshot.owned.items() if _is_of_an_earlier(item, host)}
    owned = {ref: item for ref, item in snapshot.owned.items() if ref not in stale}
    draft = Draft(delete=[snapshot.owned[ref] for ref in names.all if ref in stale])  # 2
    tokens = host_tokens(owned.get(names.tokens), snapshot.spare)  # 3
    configured = known.of(host, tokens)
    wanted = {} if isinstance(configured, Unacceptable) else _wanted(snapshot, names, configured, tokens)
    wanted = {ref: item for ref, item in wanted.items() if ref not in snapshot.taken}
    draft.apply += [item for ref, item in wanted.items() if differs(item, owned.get(ref))]  # 4
    if isinstance(configured, Configured):
        draft.delete += _withdrawn(snapshot, names, configured, owned)  # 5
    mint, renew_at = _mint(names, wanted, owned, now)  # 6
    judged, status = _status(snapshot, host, configured, names, now)  # 7
    changed = status if conditions.status_differs(host, status) else None
    return Plan(
        delete=tuple(draft.delete),
        apply=tuple(draft.apply),
        mint=mint,
        status=changed,
        notices=conditions.notices(host, status) if changed else (),
        confirm_lease=judged.connection is Connection.DOUBT,
        wake_at=min((at for at in (judged.until, renew_at) if at is not None), default=None),
    )


def _wanted(
    snapshot: Snapshot, names: Names, configured: Configured, tokens: dict[str, str]
) -> dict[Ref, Object]:
    """Every object that the host needs, in the order in which they are made."""
    return dict(_built(snapshot, names, configured, tokens))


def _built(
    snapshot: Snapshot, names: Names, configured: Configured, tokens: dict[str, str]
) -> Iterator[tuple[Ref, Object]]:
    host = snapshot.host or {}
    yield names.tokens, objects.tokens_secret(host, names, tokens)
    yield names.config, objects.config_map(host, names, configured.text)
    yield names.lease, objects.lease(host, names)
    if configured.external or snapshot.policy is Policy.IN_FORCE:
        yield from zip(names.identity, objects.identity(host, names, configured), strict=True)
    if configured.external:
        live = snapshot.owned.get(names.join)
        kept = None if live is None or _is_of_an_earlier(live, host) else live
        yield names.join, objects.join_secret(host, names, snapshot.address, kept)


def _withdrawn(
    snapshot: Snapshot, names: Names, configured: Configured, owned: dict[Ref, Object]
) -> list[Object]:
    """What the host may not have (any more)."""
    if configured.external:
        return []
    gone = [names.join, *(names.identity if snapshot.policy is Policy.MISSING else ())]
    return [owned[ref] for ref in gone if ref in owned and ref not in snapshot.taken]


def _mint(
    names: Names, wanted: dict[Ref, Object], owned: dict[Ref, Object], now: Now
) -> tuple[Mint | None, Instant | None]:
    """The token to ask for now, or when to ask for the next one."""
    join, account = owned.get(names.join), owned.get(names.account)
    if names.join not in wanted or join is None or account is None:
        return None, None
    if objects.token_is_due(join, account, now.wall):
        return Mint(names.account.name, wanted[names.join]), None
    found = claims(decoded(join, "token"))
    return None, None if found is None else Instant(now.instant + found.renew_at - now.wall)


def _status(
    snapshot: Snapshot, host: Object, configured: Configured | Unacceptable, names: Names, now: Now
) -> tuple[Judged, Object]:
    live = conditions.live_conditions(host)
    before = conditions.connection_before(live)
    lease = snapshot.owned.get(names.lease)
    judged = judge(snapshot.sight, lease, before, snapshot.contact_since, now)
    connection = before if judged.connection is Connection.DOUBT else judged.connection
    lost = connection is Connection.LOST
    seen = _seen(host, lost=before is Connection.LOST) or last_seen(snapshot.sight, lease) if lost else None
    external = "external" in (host.get("spec") or {})
    acceptance = conditions.accepted(configured, snapshot.taken, snapshot.policy, live, external=external)
    verdicts = [
        acceptance,
        conditions.agent_connected(connection, seen),
        conditions.ready(host, acceptance, connection, configured),
        *_lendable(live, seen, lost=lost),
    ]
    return judged, conditions.status_apply(host, verdicts, seen, now)


def _lendable(live: dict[str, Object], seen: str | None, *, lost: bool) -> Iterator[Verdict]:
    """The lost agent's condition, kept after its return until the agent itself says something again.

    Left out earlier, the entry would lose the fields that only we own and keep the key that the agent owns,
    which the schema refuses.
    """
    said = live.get("Lendable", {})
    if lost:
        yield conditions.lendable_of_the_lost(seen)
    elif said.get("reason") == conditions.AGENT_LOST:
        yield Verdict("Lendable", "Unknown", conditions.AGENT_LOST, str(said.get("message", "")))


def _seen(host: Object, *, lost: bool) -> str | None:
    """The time that was written when the agent was lost: it is written once."""
    said = (host.get("status") or {}).get("lastSeen")
    return str(said) if lost and said else None


def _is_of_an_earlier(item: Object, host: Object) -> bool:
    """Whether an object belongs to another host of the same name, which is no more."""
    owners = metadata(item).get("ownerReferences") or []
    hosts = [one for one in owners if one.get("kind") == host["kind"] and one.get("name") == _name(host)]
    return bool(hosts) and all(one.get("uid") != uid(host) for one in hosts)


def _name(item: Object) -> str:
    return str(metadata(item)["name"])
