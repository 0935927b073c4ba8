"""logind's D-Bus properties, turned into a session or an error: a missing property has no default."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from vacancy_agent.core.facts import Seconds
from vacancy_agent.core.presence import Session

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")
_MICROSECONDS = 1e6


class LogindPropertyError(Exception):
    """A property is missing or not of the type that logind documents."""


def parse_session(key: str, properties: Mapping[str, object], awake: Seconds) -> Session:
    """One session; `awake` is CLOCK_MONOTONIC at the read, the clock of logind's idle times.

    Raises:
        LogindPropertyError: what was read is no session.
    """
    # The time also moves when the hint is cleared, so it is an idle time only while the hint is set. That it
    # is not zero says that the hint was set at least once: a desktop that never sets it leaves it at zero.
    since = _get(properties, "IdleSinceHintMonotonic", int)
    idle = _get(properties, "IdleHint", bool)
    return Session(
        key=key,
        uid=_first(properties, "User", int),
        leader=_get(properties, "Leader", int),
        cls=_get(properties, "Class", str),
        type=_get(properties, "Type", str),
        state=_get(properties, "State", str),
        active=_get(properties, "Active", bool),
        locked=_get(properties, "LockedHint", bool),
        remote=_get(properties, "Remote", bool),
        seat=_first(properties, "Seat", str),
        vtnr=_get(properties, "VTNr", int),
        idle_for=Seconds(max(0.0, awake - since / _MICROSECONDS)) if idle and since else None,
        ever_hinted=idle or since > 0,
    )


def inhibits_idle(block_inhibited: str) -> bool:
    """Whether `Manager.BlockInhibited` (`sleep:idle`) holds off idling."""
    return "idle" in block_inhibited.split(":")


def _get(properties: Mapping[str, object], name: str, kind: type[T]) -> T:
    value = properties.get(name)
    if type(value) is not kind:
        raise LogindPropertyError(
            f"logind's property {name} is {'missing' if value is None else 'not as documented'}"
        )
    return value


def _first(properties: Mapping[str, object], name: str, kind: type[T]) -> T:
    """The first part of a pair such as (seat, object path)."""
    pair = properties.get(name)
    if not isinstance(pair, (list, tuple)) or not pair:
        raise LogindPropertyError(f"logind's property {name} is not as documented")
    return _get({name: pair[0]}, name, kind)
