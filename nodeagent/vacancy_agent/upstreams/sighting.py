"""What a look at a server showed, in the one form that proofs are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_agent.core.facts import Instant


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing runs or waits there. `began`: when the look began; it says nothing about work after that."""

    began: Instant
    how: str


@dataclass(frozen=True, slots=True)
class Working:
    """Something runs there, by whomever.

    `gone`: models that the server has let go, and when each was listed last. (Only Ollama lists them.)
    `prompts`: everything that waits or runs there, by its id; None: it does not tell. `keeps_ids`: those are
    the ids under which submissions were sent. (Only ComfyUI has them.)
    """

    began: Instant
    why: str
    gone: Mapping[str, Instant] = field(default_factory=dict)
    prompts: frozenset[str] | None = None
    keeps_ids: bool = False


@dataclass(frozen=True, slots=True)
class Unclear:
    """The look shows neither."""

    why: str


Sighting = Idle | Working | Unclear


class Watcher(Protocol):
    """Looks at one upstream's server."""

    async def look(self, not_before: Instant) -> Sighting:
        """One look, begun no sooner than `not_before`; waits until then. A server's failure is `Unclear`."""
        ...
