"""Events for people: one for each transition, and the same one not again for a while.

An Event is a courtesy: that it cannot be written changes nothing else, and is told in the log only.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from vacancy_operator.api import ApiError
from vacancy_operator.core.kinds import Kind, Object, metadata, uid
from vacancy_operator.log import tell

if TYPE_CHECKING:
    from vacancy_operator.api import Api
    from vacancy_operator.clock import Clock
    from vacancy_operator.core.facts import Instant, Notice, Now

EVENT = Kind("Event", "events.k8s.io", "v1", "events")
AGAIN_AFTER_S = 600.0
MOST_KEPT = 2000


class Recorder:
    """Posts notices as Events of the host they are about."""

    def __init__(self, api: Api, clock: Clock, identity: str) -> None:
        self._api = api
        self._clock = clock
        self._identity = identity
        self._posted: OrderedDict[tuple[str, str, str], Instant] = OrderedDict()

    async def post(self, host: Object, notice: Notice) -> None:
        """Post one, unless the same was posted a while ago."""
        now = self._clock.now()
        if not self._is_new((uid(host), notice.reason, notice.note), now.instant):
            return
        try:
            await self._api.create(EVENT, event(host, notice, self._identity, now))
        except ApiError as error:
            tell("event not posted", reason=notice.reason, error=error)

    def _is_new(self, key: tuple[str, str, str], now: Instant) -> bool:
        last = self._posted.get(key)
        if last is not None and now - last < AGAIN_AFTER_S:
            return False
        self._posted[key] = now
        self._posted.move_to_end(key)
        if len(self._posted) > MOST_KEPT:
            self._posted.popitem(last=False)
        return True


def event(host: Object, notice: Notice, identity: str, now: Now) -> Object:
    """The Event that says it."""
    about = metadata(host)
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.name,
        "metadata": {"generateName": f"{about['name']}-", "namespace": str(about["namespace"])},
        "eventTime": f"{now.text.removesuffix('Z')}.{int(now.wall % 1 * 1e6):06d}Z",
        "reportingController": "vacancy.dev/operator",
        "reportingInstance": identity,
        "action": "Reconcile",
        "reason": notice.reason,
        "type": "Warning" if notice.warning else "Normal",
        "note": notice.note,
        "regarding": {
            "apiVersion": str(host["apiVersion"]),
            "kind": str(host["kind"]),
            "name": str(about["name"]),
            "namespace": str(about["namespace"]),
            "uid": uid(host),
        },
    }
