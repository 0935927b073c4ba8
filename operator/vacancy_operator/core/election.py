"""Which of the replicas is the active one: a Lease, and each replica's own clock.

Invariant: two replicas are never active at once while their clocks run at the same speed: the holder stops
before its Lease is over, counted from before it asked for it, and another takes it only after it has itself
seen no renewal for the whole duration. Replacing with the version that was read settles a race for it.

Steps, first match decides:
1. there is no Lease: make it
2. it is ours, or nobody's: take it
3. the holder's renewal is new to us: wait, and remember when we saw it
4. it has not renewed for its duration: take it
5. wait
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from vacancy_operator.core.kinds import LEASE, Object, metadata

if TYPE_CHECKING:
    from vacancy_operator.core.facts import Instant, Now

MARGIN_S = 2.0
"""How long before its end a Lease is not relied upon any more."""


class Move(Enum):
    """What to do about the Lease."""

    CREATE = "create"
    TAKE = "take"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Rival:
    """The last renewal of another replica, and when this one saw it."""

    renewal: str
    at: Instant


def step(lease: Object | None, me: str, rival: Rival | None, now: Instant) -> tuple[Move, Rival | None]:
    """Steps 1 to 5 of the module."""
    if lease is None:
        return Move.CREATE, None
    spec = lease.get("spec") or {}
    holder = spec.get("holderIdentity")
    if not holder or holder == me:
        return Move.TAKE, None
    renewal = f"{holder} {spec.get('renewTime')} {metadata(lease).get('resourceVersion')}"
    if rival is None or rival.renewal != renewal:
        return Move.WAIT, Rival(renewal, now)
    if now >= rival.at + float(spec.get("leaseDurationSeconds") or 0):
        return Move.TAKE, rival
    return Move.WAIT, rival


def claim(lease: Object | None, name: str, namespace: str, me: str, seconds: int, now: Now) -> Object:
    """The Lease with this replica as its holder."""
    before: Any = (lease or {}).get("spec") or {}
    mine = before.get("holderIdentity") == me
    time = f"{now.text.removesuffix('Z')}.{int(now.wall % 1 * 1e6):06d}Z"
    spec = {
        **before,
        "holderIdentity": me,
        "leaseDurationSeconds": seconds,
        "renewTime": time,
        "acquireTime": before.get("acquireTime") if mine else time,
        "leaseTransitions": int(before.get("leaseTransitions") or 0) + (0 if mine else 1),
    }
    about = {"name": name, "namespace": namespace}
    return {
        "apiVersion": LEASE.api_version,
        "kind": LEASE.name,
        "metadata": dict(metadata(lease)) if lease else about,
        "spec": spec,
    }


def release(lease: Object) -> Object:
    """The Lease with nobody as its holder, so that another need not wait."""
    return {**lease, "spec": {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}}
