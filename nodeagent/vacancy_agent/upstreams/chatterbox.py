"""Whether a Chatterbox server speaks.

Two servers go by this name. One tells at `/v1/status` (its `/status` is its health, whatever the name says).
The other does not tell, but answers nothing at all while it speaks: any answered read shows that it does not.
Two of them are asked for, a moment apart, since a request that it has just taken may yet be about to speak.

Source: travisvn/chatterbox-tts-api a5f46612, devnen/Chatterbox-TTS-Server 68213e75; both read, not run.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from vacancy_agent.upstreams.ask import AskError, NoAnswerError
from vacancy_agent.upstreams.sighting import Idle, Unclear, Working
from vacancy_agent.upstreams.waiting import wait_until

if TYPE_CHECKING:
    from vacancy_agent.clock import Clock
    from vacancy_agent.core.facts import Instant
    from vacancy_agent.upstreams.ask import ServerClient
    from vacancy_agent.upstreams.local import LocalServer
    from vacancy_agent.upstreams.sighting import Sighting

STATUS, MODEL_INFO = "/v1/status", "/api/model-info"
APART_S = 0.5
"""Between two reads of the server that hangs while it speaks."""
_OK, _NO_SUCH_ROUTE = 200, 404


class ChatterboxWatcher:
    """Either server; a third kind is judged by its processes."""

    def __init__(self, server: ServerClient, local: LocalServer, clock: Clock) -> None:
        """Nothing is asked before the first look."""
        self._server = server
        self._local = local
        self._clock = clock

    async def look(self, not_before: Instant) -> Sighting:
        """One look."""
        await wait_until(self._clock, not_before)
        began = self._clock.now()
        try:
            answer = await self._server.get(STATUS)
            if answer.status == _OK:
                return _told(began, answer.json())
            hangs = answer.status == _NO_SUCH_ROUTE and await self._answers_when_idle()
        except NoAnswerError as error:
            return Working(began, f"it may speak: {error}")
        except AskError as error:
            return Unclear(str(error))
        if hangs:
            return Idle(began, "it answers, which it does not while it speaks")
        return await self._local.look(not_before)

    async def _answers_when_idle(self) -> bool:
        """Whether it is the server that hangs while it speaks; it answered now and a moment later."""
        if (await self._server.get(MODEL_INFO)).status != _OK:
            return False
        await asyncio.sleep(APART_S)
        return (await self._server.get(MODEL_INFO)).status == _OK


def _told(began: Instant, status: object) -> Sighting:
    processing = status.get("is_processing") if isinstance(status, dict) else None
    if processing is False:
        return Idle(began, "its status says that it does not speak")
    if processing is True:
        return Working(began, "its status says that it speaks")
    return Unclear("its status does not say whether it speaks")
