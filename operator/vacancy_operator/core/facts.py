"""What goes into a decision and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, NewType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_operator.core.kinds import Object, Ref

Instant = NewType("Instant", float)
"""Seconds on the operator's own clock, which counts suspend; only differences mean anything."""
Wall = NewType("Wall", float)
"""Seconds since the Unix epoch: for what people read and what tokens say, never for intervals of ours."""


@dataclass(frozen=True, slots=True)
class Now:
    """The moment of a decision on both clocks."""

    instant: Instant
    wall: Wall

    @property
    def text(self) -> str:
        """The wall time as RFC 3339."""
        return rfc3339(self.wall)


def rfc3339(wall: Wall) -> str:
    """A time as the API server writes it, in whole seconds."""
    return datetime.fromtimestamp(int(wall), UTC).isoformat().replace("+00:00", "Z")


class Policy(Enum):
    """Whether the admission policy that keeps one node from another's identity is in force."""

    IN_FORCE = "in force"
    MISSING = "missing"
    UNKNOWN = "unknown"
    """It could not be read: nothing is made and nothing withdrawn."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What the operator itself saw of a host's Lease."""

    renewal: str
    """The last renewal: holder and time as the agent wrote them; empty: none yet."""
    at: Now
    """When the operator first saw that renewal."""
    fresh: bool
    """Whether it saw it come; false: it was there when the operator began to look."""
    confirmed: Instant | None = None
    """When the API server, asked about this very Lease, last said that there is no newer one."""


@dataclass(frozen=True, slots=True)
class JoinAddress:
    """Where an external machine finds the API server."""

    server: str
    ca: str
    """Certificates of its authority, PEM."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that is known of one host at one moment."""

    namespace: str
    host: Object | None
    owned: Mapping[Ref, Object]
    """What exists of the names that belong to the host, whoever made it."""
    taken: frozenset[Ref]
    """Of these names, the ones that something else bears."""
    policy: Policy
    sight: Sight | None
    contact_since: Instant | None
    """Since when the operator has been talking to the API server without a gap; None: it is not."""
    address: JoinAddress
    spare: tuple[str, str, str]
    """Fresh random tokens, used where one is missing."""


@dataclass(frozen=True, slots=True)
class Mint:
    """Ask for a token of the host's account, bound to its join Secret, and put it there."""

    account: str
    secret: Object
    """The Secret as it is to be, the token left out."""


@dataclass(frozen=True, slots=True)
class Notice:
    """An Event to post: something changed that somebody may want to know."""

    reason: str
    note: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done about one host. Empty: nothing."""

    delete: tuple[Object, ...] = ()
    """Live objects that must go before anything of their name is made."""
    apply: tuple[Object, ...] = ()
    """Whole objects as they are to be; only those that differ from what is live."""
    mint: Mint | None = None
    status: Object | None = None
    """The operator's part of the status, whole; None: it is what it should be."""
    notices: tuple[Notice, ...] = ()
    """Events that go with the status."""
    confirm_lease: bool = False
    """Ask the API server for the Lease itself, then decide again: the agent seems lost."""
    wake_at: Instant | None = None
    """When to decide again even if nothing happens."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write or ask."""
        return not (self.delete or self.apply or self.mint or self.status is not None or self.confirm_lease)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A condition before it is compared with the one that is there."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(slots=True)
class Draft:
    """A plan while it is being made."""

    delete: list[Object] = field(default_factory=list)
    apply: list[Object] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
