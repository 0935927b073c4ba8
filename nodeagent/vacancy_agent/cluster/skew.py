"""How far this machine's clock is ahead of the API server's, from the Date of its answers. Pure.

A Date is a whole second that was cut off, and the answer took its time: each one yields an interval in which
the difference lies. Zero is reported while it can be zero; a clock is not called wrong for what the
measurement cannot see.
"""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vacancy_agent.core.facts import WallTime

_RESOLUTION_S = 1.0


def parse_date(header: str | None) -> float | None:
    """Seconds since the Unix epoch of an HTTP Date; None: there is none, or it is no date."""
    if header is None:
        return None
    try:
        date = parsedate_to_datetime(header)
    except ValueError:
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def skew(sent: WallTime, received: WallTime, date: float) -> float:
    """Seconds that the machine's clock is ahead (negative: behind), whole; 0.0 where it may be right.

    Args:
        sent: the machine's time when the request left.
        received: the machine's time when the head of the answer was there.
        date: the server's time in the answer.
    """
    low, high = sent - (date + _RESOLUTION_S), received - date
    if low <= 0.0 <= high:
        return 0.0
    return float(round((low + high) / 2))
