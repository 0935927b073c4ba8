"""What we ask of an Ollama: which models it holds, and how one of them is set up.

Invariant: `/api/ps` is asked with a short deadline, because it may block while a model loads. No answer in
time is an error like any other (the observation grows stale); it never reads as an empty list, which would
prove an unload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from vacancy_agent.core.parse.ollama import OllamaAnswerError, parse_ps, parse_show
from vacancy_agent.upstreams.ask import AskError

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_agent.core.parse.ollama import Resident, Shown
    from vacancy_agent.upstreams.ask import Answer, ServerClient

T = TypeVar("T")
PS_WITHIN_S = 1.0
"""An idle or working server answers `/api/ps` in a millisecond; a loading one may not answer at all."""
SHOW_WITHIN_S = 2.0
_OK = 200


class OllamaServer:
    """One Ollama server, as the agent asks it."""

    def __init__(self, server: ServerClient) -> None:
        """`server` is asked; nothing is sent before the first question."""
        self.server = server

    async def residents(self) -> tuple[Resident, ...]:
        """The models it holds now.

        Raises:
            AskError: no answer within `PS_WITHIN_S`, or none that can be read.
        """
        return _read(parse_ps, await self.server.get("/api/ps", timeout=PS_WITHIN_S))

    async def show(self, model: str) -> Shown:
        """How a model is set up by its Modelfile.

        Raises:
            AskError: no answer in time, none that can be read, or no such model.
        """
        asked = {"model": model}
        return _read(parse_show, await self.server.post("/api/show", asked, timeout=SHOW_WITHIN_S))


def _read(parse: Callable[[bytes], T], answer: Answer) -> T:
    if answer.status != _OK:
        raise AskError(f"answered {answer.status}")
    try:
        return parse(answer.body)
    except OllamaAnswerError as error:
        raise AskError(str(error)) from error
