"""AMD GPUs: not read yet, and said so, so that nothing is lent on a guess."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Unknown

if TYPE_CHECKING:
    from vacancy_agent.core.facts import Capacity, Reading


class AmdProbe:
    """A capacity probe that knows nothing."""

    async def sample(self) -> Reading[Capacity]:
        """Return an unknown reading."""
        return Unknown("AMD GPUs are not supported yet")
