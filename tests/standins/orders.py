"""Orders of a borrower to a `LendingRig`, and what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from standins import agreement
from standins.http_text import CHAT, answer, request
from standins.lending_rig import BORROW

if TYPE_CHECKING:
    from standins.http_engine import Client
    from standins.http_text import Answer
    from standins.lending_rig import LendingRig
    from vacancy_agent.proxy.counters import Outcome

BODY = {"model": "m", "messages": []}
STREAM = {"model": "m", "messages": [], "stream": True}


def order(rig: LendingRig, body: object = BODY, path: str = CHAT) -> Client:
    """A borrower's order, which must have gone to the upstream."""
    client = rig.port.connect(request(path, body, token=BORROW))
    assert client.got() == b""
    assert rig.port.upstream.links
    return client


def refused(rig: LendingRig, body: object = BODY) -> Answer:
    """The proxy's answer to an order that it keeps."""
    return answer(rig.port.connect(request(body=body, token=BORROW)).got())


def outcomes(rig: LendingRig) -> dict[Outcome, int]:
    """How orders ended, by number."""
    return {outcome: n for outcome, n in rig.port.app.counters.outcomes.items() if n}


def held(rig: LendingRig) -> list[str]:
    """Why each held job is held; all books agree."""
    agreement.check(rig.host, rig.journal, rig.reclaims)
    return [job.why for job in rig.host.ledger.holds()]
