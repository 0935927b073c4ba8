"""The agent's conditions as values: only a change produces output.

Invariant: `since` moves when the status changes, and nothing is returned for a condition that is as it was,
so a writer that sends what it is given writes once per change. Messages carry no measured numbers: they would
make every sample a change. Rejected: comparing in the writer, which each new writer forgets.

Usage::

    conditions = Conditions()
    changed = conditions.set(lendable_finding(host_lendable(board, now, wall)), wall)   # Condition | None
    changed = conditions.set(presence_finding(board, now), wall)
    conditions.all()                                                                   # for /status
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Evidence, Stale, Unknown
from vacancy_agent.core.verdict import sentence
from vacancy_api.reasons import ConditionType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vacancy_agent.core.board import Board
    from vacancy_agent.core.facts import Instant, Presence, WallTime
    from vacancy_agent.core.lendable import Lendable

_SHOWN_ERRORS = 20
_MESSAGE_CHARACTERS = 4096


class Status(StrEnum):
    """Value of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one condition, without its history."""

    type: ConditionType
    status: Status
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Condition:
    """A finding and when its status last changed."""

    type: ConditionType
    status: Status
    reason: str
    message: str
    since: WallTime


class Conditions:
    """The current conditions of the host."""

    def __init__(self) -> None:
        self._known: dict[ConditionType, Condition] = {}

    def set(self, found: Finding, wall: WallTime) -> Condition | None:
        """Take over a finding; returns the condition if anything about it changed."""
        known = self._known.get(found.type)
        since = known.since if known is not None and known.status is found.status else wall
        condition = Condition(found.type, found.status, found.reason, found.message, since)
        if condition == known:
            return None
        self._known[found.type] = condition
        return condition

    def all(self) -> tuple[Condition, ...]:
        """Every condition that was found so far, in the order of the enum."""
        return tuple(self._known[kind] for kind in ConditionType if kind in self._known)


def lendable_finding(answer: Lendable) -> Finding:
    """`Lendable`: a request to at least one upstream would be admitted, own work aside."""
    refusal = answer.refusal
    if refusal is None:
        return Finding(ConditionType.LENDABLE, Status.TRUE, answer.reason, "a request would be admitted")
    return Finding(ConditionType.LENDABLE, Status.FALSE, answer.reason, sentence(refusal))


def presence_finding(board: Board, now: Instant) -> Finding:
    """`PresenceSignal`: can this machine tell whether its owner is there?"""
    status, reason, message = _presence(board, now)
    return Finding(ConditionType.PRESENCE_SIGNAL, status, reason, message)


def _presence(board: Board, now: Instant) -> tuple[Status, str, str]:
    reading = board.presence
    if not board.presence_sampled:
        return Status.UNKNOWN, "NotSampled", "presence has not been sampled yet"
    if isinstance(reading, Unknown):
        return Status.FALSE, "Unreadable", reading.why
    if isinstance(reading, Stale) or now - reading.at > board.settings.sampling.stale_after:
        return Status.FALSE, "Stale", "the last presence sample is too old"
    return _sampled(reading.value, headless=board.settings.owner.headless)


def _sampled(presence: Presence, *, headless: bool) -> tuple[Status, str, str]:
    if presence.hint_missing:
        return Status.FALSE, "IdleHintNeverReported", _HINT_MISSING
    if presence.evidence is Evidence.UNCLEAR:
        return Status.FALSE, "IncompleteEvidence", presence.why
    if presence.evidence is Evidence.UNSUPPORTED:
        return (
            Status.UNKNOWN,
            "Unsupported",
            "this platform has no presence backend; presence does not refuse",
        )
    if headless:
        return Status.TRUE, "Headless", "nobody works at this machine, by configuration"
    return Status.TRUE, "Reporting", "presence is read"


_HINT_MISSING = (
    "the desktop has never reported that it is idle: lending waits for a lock or a logout; "
    "let the desktop or an idle daemon set logind's idle hint"
)


def reclaimed_finding(claims: Mapping[str, bool | None]) -> Finding | None:
    """`Reclaimed`: what the upstreams showed when they were last asked to unload.

    Args:
        claims: by upstream whether it showed that it let go, None while it is being asked; an upstream that
            was never asked is missing.

    Returns:
        None while no upstream was asked: nothing is claimed.
    """
    if not claims:
        return None
    missing = sorted(name for name, shown in claims.items() if shown is False)
    if missing:
        message = f"asked to unload, and not shown to have let go of its memory: {', '.join(missing)}"
        return Finding(ConditionType.RECLAIMED, Status.FALSE, "UnloadNotConfirmed", message)
    asked = sorted(name for name, shown in claims.items() if shown is None)
    if asked:
        message = f"asked to unload just now: {', '.join(asked)}"
        return Finding(ConditionType.RECLAIMED, Status.UNKNOWN, "Unloading", message)
    return Finding(ConditionType.RECLAIMED, Status.TRUE, "Reclaimed", "every upstream showed that it let go")


def config_finding(errors: Sequence[str]) -> Finding:
    """`ConfigApplied`: the newest configuration runs, or every reason why it does not.

    Args:
        errors: one line each, beginning with the path in the configuration; empty: it was applied.
    """
    if not errors:
        return Finding(ConditionType.CONFIG_APPLIED, Status.TRUE, "Applied", "the configuration is applied")
    more = len(errors) - _SHOWN_ERRORS
    lines = [*errors[:_SHOWN_ERRORS], *([f"and {more} more"] if more > 0 else [])]
    message = "; ".join(lines)[:_MESSAGE_CHARACTERS]
    return Finding(ConditionType.CONFIG_APPLIED, Status.FALSE, "Invalid", message)
