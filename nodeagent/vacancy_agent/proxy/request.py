"""One borrower's request as the proxy knows it: the application's slot of an exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vacancy_agent.core.facts import WallTime
    from vacancy_agent.core.job import Job
    from vacancy_dialects import EndWatch, Match
    from vacancy_edge import Principal
    from vacancy_http import Exchange


class Request:
    """Who asks for what, and, once admitted, which job it is.

    Attributes:
        principal: who asks.
        borrower: name that the owner sees; the gateway's word where the gateway asks.
        match: what the route table says.
        exchange: the engine's side of it.
        job: the ledger's entry while it is forwarded; None before, and for all that is no work.
        slot: the job's slot in the hold journal.
        started: when it was admitted.
        watch: looks for the end marker of an event stream; None where complete framing is proof enough.
        retype: it goes on as JSON, which its Content-Type did not say.
        waited: it has waited for a capacity sample already, and does not a second time.
    """

    __slots__ = (
        "borrower",
        "exchange",
        "job",
        "match",
        "principal",
        "retype",
        "slot",
        "started",
        "waited",
        "watch",
    )

    def __init__(self, exchange: Exchange, principal: Principal, borrower: str, match: Match) -> None:
        self.exchange = exchange
        self.principal = principal
        self.borrower = borrower
        self.match = match
        self.job: Job | None = None
        self.slot = -1
        self.started: WallTime | None = None
        self.watch: EndWatch | None = None
        self.waited = False
        self.retype = False
