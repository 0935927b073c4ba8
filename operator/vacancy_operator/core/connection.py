"""Is the agent of a host there? Judged by its Lease, on the operator's own clock.

Invariant: an agent is called lost only after the operator, in unbroken contact with the API server, has seen
no renewal for the Lease's whole duration, and the API server has confirmed that there is none. An operator
that was itself cut off, or whose watch is stuck, would otherwise take every machine of the cluster out of
service.
Rejected: the time that the agent writes, since the two clocks may differ by minutes.

Steps, first match decides:
1. no Lease was seen, or none with a renewal and the agent was not connected before: what it was before
2. the agent gave its Lease back (it ended as asked), and that was seen to happen: lost at once
3. within the duration after the last renewal, or after contact was made if that is later: connected if the
   renewal was seen to come or the agent counted as connected before; else what it was before
4. past it without contact: what it was before
5. past it, not yet confirmed: doubt
6. lost
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from vacancy_operator.core.facts import Instant, Now, Sight
from vacancy_operator.core.kinds import metadata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_operator.core.kinds import Object

DURATION_S = 40.0
"""Length of a Lease that does not say."""


class Connection(Enum):
    """What the operator thinks of an agent."""

    NOT_JOINED = "not joined"
    CONNECTED = "connected"
    DOUBT = "doubt"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict, and when it has to be looked at again."""

    connection: Connection
    until: Instant | None = None


def observe(before: Sight | None, lease: Object | None, now: Now) -> Sight | None:
    """What is known of a Lease after looking at it once more."""
    if lease is None:
        return before
    renewal = _renewal(lease)
    if before is None:
        return Sight(renewal, now, fresh=_was_made_empty(lease, renewal))
    if before.renewal == renewal:
        return before
    return Sight(renewal, now, fresh=True)


def confirmed(sight: Sight | None, now: Now) -> Sight | None:
    """The API server was asked for the Lease itself, and this is what it said."""
    return sight and Sight(sight.renewal, sight.at, sight.fresh, now.instant)


def judge(
    sight: Sight | None, lease: Object | None, before: Connection, contact_since: Instant | None, now: Now
) -> Judged:
    """Steps 1 to 6 of the module."""
    if sight is None or not (sight.renewal or before is Connection.CONNECTED):
        return Judged(before)
    if sight.fresh and sight.renewal and not _spec(lease).get("holderIdentity"):
        return Judged(Connection.LOST)
    deadline = Instant(max(sight.at.instant, contact_since or 0.0) + _duration(lease))
    if now.instant < deadline:
        return Judged(Connection.CONNECTED if sight.fresh else before, deadline)
    if contact_since is None:
        return Judged(before)
    if before is not Connection.LOST and (sight.confirmed or 0.0) < deadline:
        return Judged(Connection.DOUBT)
    return Judged(Connection.LOST)


def last_seen(sight: Sight | None, lease: Object | None) -> str | None:
    """When the agent gave its last sign; None: never."""
    if sight is None or not sight.renewal:
        return None
    written = _spec(lease).get("renewTime")
    return sight.at.text if sight.fresh or not written else str(written)


def _renewal(lease: Object) -> str:
    spec = _spec(lease)
    return f"{spec.get('holderIdentity') or ''} {spec['renewTime']}" if spec.get("renewTime") else ""


def _was_made_empty(lease: Object, renewal: str) -> bool:
    """A Lease that nobody has renewed yet hides no past."""
    return not renewal and bool(metadata(lease))


def _spec(lease: Object | None) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (lease or {}).get("spec") or {}
    return found


def _duration(lease: Object | None) -> float:
    said = _spec(lease).get("leaseDurationSeconds")
    return float(said) if isinstance(said, int) and said > 0 else DURATION_S
