"""Cuts the borrowers' connections of jobs that are taken back, and has what goes on without one cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.core.verdict import Refuse, sentence
from vacancy_api.reasons import Reason
from vacancy_edge import Refusal, refusal_reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from vacancy_agent.core.job import JobId
    from vacancy_agent.proxy.host import Host

HINTS = {Reason.OWNER_ACTIVE: 120, Reason.LENDING_DISABLED: 300, Reason.RESOURCE_PRESSURED: 30}
"""Seconds: the gate's own hints for the same reasons."""


class Cutter:
    """Ends exchanges from outside: a 503 with the trigger's reason before a reply began, an abort after."""

    def __init__(
        self, host: Host, cancel_tracked: Callable[[str, tuple[JobId, ...]], None] | None = None
    ) -> None:
        """`cancel_tracked` is told of jobs whose work goes on, or may, after their exchange."""
        self._host = host
        self._cancel_tracked = cancel_tracked
        self._replies = {
            reason: refusal_reply(
                Refusal(reason, sentence(Refuse(reason, hint)), hint, {"cause": "taken_back"})
            )
            for reason, hint in HINTS.items()
        }

    def cut(self, job: JobId, reason: Reason) -> None:
        """End this job's exchange now, or its work after it; a job that has ended already is ignored."""
        host, cancel = self._host, self._cancel_tracked
        request, goes_on = host.requests.get(job), job in host.tracked
        if request is not None:
            goes_on = request.prompt is not None
            request.exchange.cancel(self._replies[reason])
        known = host.ledger.job(job)
        if goes_on and cancel is not None and known is not None:
            cancel(known.upstream, (job,))
