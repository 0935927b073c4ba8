"""Cuts the borrowers' connections of jobs that are taken back, and has what goes on without one cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vacancy_agent.core.gate import allowed
from vacancy_agent.core.verdict import Refuse, sentence
from vacancy_api.reasons import Reason
from vacancy_edge import Refusal, refusal_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vacancy_agent.core.job import JobId
    from vacancy_agent.proxy.host import Host
    from vacancy_http.reply import Reply

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
        self._replies = {reason: _reply(reason, {}) for reason in HINTS}

    def cut(self, job: JobId, reason: Reason) -> None:
        """End this job's exchange now, or its work after it; a job that has ended already is ignored."""
        host, cancel = self._host, self._cancel_tracked
        request, held = host.requests.get(job), host.held_slots.get(job)
        goes_on = job in host.tracked or (held is not None and held.prompt is not None)
        if request is not None:
            goes_on = request.prompt is not None
            request.exchange.cancel(self._said_now(job, reason) or self._replies[reason])
        known = host.ledger.job(job)
        if goes_on and cancel is not None and known is not None:
            cancel(known.upstream, (job,))

    def _said_now(self, job: JobId, reason: Reason) -> Reply | None:
        """What is to be said beyond the reason itself: whose word it is, when it ends, what is not known."""
        if reason is Reason.LENDING_DISABLED:
            return self._paused()
        return self._unknown_load(job) if reason is Reason.RESOURCE_PRESSURED else None

    def _paused(self) -> Reply | None:
        """The gate's own answer, whose hint is the time to the end of a pause."""
        off = allowed(self._host.board, self._host.clock.wall())
        return None if off is None else _worded(off)

    def _unknown_load(self, job: JobId) -> Reply | None:
        """Where the owner's load is not high but could not be read, say for how long."""
        known = self._host.ledger.job(job)
        if known is None:
            return None
        for name in known.resources:
            view = self._host.board.pressure_view.get(name)
            if view is not None and view.unknown_for is not None:
                more = {"resource": name, "unknownSeconds": round(view.unknown_for)}
                return _reply(Reason.RESOURCE_PRESSURED, more)
        return None


def _reply(reason: Reason, more: Mapping[str, object]) -> Reply:
    return _worded(Refuse(reason, HINTS[reason], more))


def _worded(refuse: Refuse) -> Reply:
    detail = {"cause": "taken_back", **refuse.detail}
    return refusal_reply(Refusal(refuse.reason, sentence(refuse), refuse.retry_after, detail))
