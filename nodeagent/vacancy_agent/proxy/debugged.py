"""A proxy that tells every request, for the length of a debug window.

Invariant: while no window is open, no request pays for it: not a flag is looked at. A window makes another
class of each proxy and takes it back at its end; connections and requests under way follow at once, since the
object is the same. Rejected: a check in each step, paid by every request of a year for ten minutes of it; a
wrapper around the proxy, which open connections would not see.

What is told: method, path, borrower, model, status, why refused, how it ended. Never a header's value, a
query or a body: a log that is sent to somebody must not hold a key or a prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vacancy_agent.proxy.app import GatedProxy

if TYPE_CHECKING:
    from vacancy_agent.proxy.request import Request
    from vacancy_edge import Refusal
    from vacancy_http import Ending, Exchange

LONGEST_PATH = 200


class DebuggedProxy(GatedProxy):
    """A `GatedProxy` while a window is open. It has no state of its own."""

    def refuse(self, x: Exchange, refusal: Refusal) -> None:
        """Tell why."""
        facts = {"reason": refusal.reason.value, "why": refusal.message, **_request(x)}
        self.host.tell("debug refused", upstream=self.name, **facts)
        super().refuse(x, refusal)

    def exchange_ended(self, x: Exchange, ending: Ending) -> None:
        """Tell how it ended."""
        facts = {"status": x.status, "ending": ending.value, **_request(x)}
        request: Request | None = x.context
        if request is not None and request.job is not None:
            job = request.job
            facts |= {
                "job": job.id,
                "model": job.model,
                "seconds": round(self.host.clock.now() - job.since, 3),
            }
        self.host.tell("debug request", upstream=self.name, **facts)
        super().exchange_ended(x, ending)


def watch(proxy: GatedProxy, *, on: bool) -> None:
    """Have the proxy tell every request, or not any more."""
    proxy.__class__ = DebuggedProxy if on else GatedProxy


def _request(x: Exchange) -> dict[str, Any]:
    request: Request | None = x.context
    path = x.path[:LONGEST_PATH].decode("latin-1") if isinstance(x.path, bytes) else x.path[:LONGEST_PATH]
    borrower = None if request is None else request.plan.borrower
    return {"method": x.method, "path": path, "borrower": borrower}
