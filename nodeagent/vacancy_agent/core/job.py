"""A job of the ledger: its phases as a table, and what may end it in which phase."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, NewType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_agent.core.facts import Instant, ProcessIdentity

JobId = NewType("JobId", int)


class Phase(StrEnum):
    """Where a job is."""

    FORWARDING = "forwarding"
    """Its exchange with the upstream is under way."""
    TRACKING = "tracking"
    """Its exchange ended as it should, and the upstream still works on it (ComfyUI's queue)."""
    HELD = "held"
    """Its exchange ended otherwise; nothing has proved yet that the work did."""
    RELEASED = "released"

    __hash__ = str.__hash__  # Enum's own is written in Python, and every request looks phases up


class ReleasedBy(StrEnum):
    """What ended a job."""

    PROOF = "proof"
    """A terminal reply, or the dialect's own proof; also: nothing was ever sent."""
    ADMINISTRATOR = "administrator"
    REPLACED = "replaced"
    """The upstream's process is another one now."""
    ASSUMED = "assumed"
    """`assumeEndedAfter` passed, which only the owner writes."""

    __hash__ = str.__hash__  # as above


MOVES: Mapping[Phase, frozenset[Phase]] = {
    Phase.FORWARDING: frozenset({Phase.TRACKING, Phase.HELD, Phase.RELEASED}),
    Phase.TRACKING: frozenset({Phase.HELD, Phase.RELEASED}),
    Phase.HELD: frozenset({Phase.RELEASED}),
    Phase.RELEASED: frozenset(),
}
RELEASES: Mapping[Phase, frozenset[ReleasedBy]] = {
    Phase.FORWARDING: frozenset({ReleasedBy.PROOF}),
    Phase.TRACKING: frozenset({ReleasedBy.PROOF, ReleasedBy.REPLACED}),
    Phase.HELD: frozenset(ReleasedBy),
    Phase.RELEASED: frozenset(),
}
"""Which cause may release a job in which phase: what still runs cannot be declared ended."""


@dataclass(slots=True, eq=False)
class Job:
    """One accepted request. The ledger alone changes it."""

    id: JobId
    upstream: str
    resources: tuple[str, ...]
    phase: Phase
    since: Instant
    """When it was admitted."""
    borrower: str
    model: str | None
    process: ProcessIdentity | None
    why: str = ""
    """Why it is held."""
    held_since: Instant | None = None
    released_by: ReleasedBy | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """A job as the journal kept it over a restart."""

    id: JobId | None
    """None: the journal could not tell (a damaged slot); the ledger gives it one."""
    upstream: str
    since: Instant
    why: str
    borrower: str
    model: str | None = None
    process: ProcessIdentity | None = None


class Moved(NamedTuple):
    """A job changed phase. `idle`: the resources on which it was the last job; sample them now."""

    job: Job
    was: Phase
    idle: tuple[str, ...] = ()


class Ignored(NamedTuple):
    """Nothing happened: no such job (any more), or the table of moves has no such move."""

    id: JobId
    why: str


Outcome = Moved | Ignored
