"""What an Ollama listed, and when: the memory behind "it was listed after the job was forwarded and is gone".

Invariant: a model counts as gone only when a list was read whole without it, twice, a second apart: while a
server reloads a model with other options it may list it nowhere for a moment. Whoever of the agent reads the
list of a server reads it through here, so that what one look saw (an unload's, say) serves the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.core.facts import Instant, Seconds
from vacancy_agent.upstreams.ollama import OllamaServer
from vacancy_dialects import canonical_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vacancy_agent.clock import Clock
    from vacancy_agent.core.parse.ollama import Resident
    from vacancy_agent.upstreams.ask import ServerClient

APART = Seconds(1.0)
"""Between the two reads that show a model to be gone."""


class OllamaLists:
    """The one memory of one server's lists."""

    def __init__(self, client: ServerClient, clock: Clock) -> None:
        """`client` is asked; nothing is sent before the first look."""
        self.client = client
        self._server = OllamaServer(client)
        self._clock = clock
        self._listed: dict[str, Instant] = {}
        """Each model that was ever listed, and when the newest list began that had it."""
        self._missing: dict[str, Instant] = {}
        """Those of them that the newest list lacks, and since which list."""
        self._read_at = Instant(0.0)

    async def residents(self) -> tuple[Resident, ...]:
        """The models it holds now.

        Raises:
            AskError: no answer in time, or none that can be read.
        """
        began = self._clock.now()
        found = await self._server.residents()
        names = {canonical_model("ollama", one.name) for one in found}
        self._listed.update(dict.fromkeys(names, began))
        self._missing = {name: self._missing.get(name, began) for name in self._listed.keys() - names}
        self._read_at = began
        return found

    @property
    def missing_of_late(self) -> bool:
        """A model is missing that one more look, `APART` later, would show to be gone."""
        return any(self._read_at - since < APART for since in self._missing.values())

    @property
    def gone(self) -> Mapping[str, Instant]:
        """The models that are gone as of the newest list, and when each was listed last."""
        return {
            name: self._listed[name]
            for name, since in self._missing.items()
            if self._read_at - since >= APART
        }
