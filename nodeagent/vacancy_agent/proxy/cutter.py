"""Cuts the borrowers' connections of jobs that are taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.core.verdict import Refuse, sentence
from vacancy_api.reasons import Reason
from vacancy_edge import Refusal, refusal_reply

if TYPE_CHECKING:
    from vacancy_agent.core.job import JobId
    from vacancy_agent.proxy.host import Host

HINTS = {Reason.OWNER_ACTIVE: 120, Reason.LENDING_DISABLED: 300, Reason.RESOURCE_PRESSURED: 30}
"""Seconds: the gate's own hints for the same reasons."""


class Cutter:
    """Ends exchanges from outside: a 503 with the trigger's reason before a reply began, an abort after."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._replies = {
            reason: refusal_reply(
                Refusal(reason, sentence(Refuse(reason, hint)), hint, {"cause": "taken_back"})
            )
            for reason, hint in HINTS.items()
        }

    def cut(self, job: JobId, reason: Reason) -> None:
        """End this job's exchange now; a job that has ended already is ignored."""
        request = self._host.requests.get(job)
        if request is not None:
            request.exchange.cancel(self._replies[reason])
