"""`vacancy agent` that kills itself, as `kill -9` does, at a point of its code that a test names.

The file named by `KILL_AT` holds the point: `before` or `after`, and one of `POINTS`, with the cause where it
is a release. While the file is not there, nothing happens.

    python -m standins.killed_agent agent --manifest host.json ...
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vacancy_agent import cli
from vacancy_agent.core.facts import Seconds
from vacancy_agent.core.job import ReleasedBy
from vacancy_agent.core.ledger import Ledger
from vacancy_agent.store.journal import Partition
from vacancy_agent.wiring import tracks
from vacancy_http import Exchange

if TYPE_CHECKING:
    from collections.abc import Callable

POINTS: dict[str, type] = {
    "reserve": Ledger,
    "write": Partition,
    "forward": Exchange,
    "hold": Ledger,
    "track": Ledger,
    "mark": Partition,
    "free": Partition,
    "proved": Ledger,
    "release": Ledger,
}
"""Every call that moves a job or its slot in the journal, in the order in which they come."""
ARMED = "KILL_AT"


def die_at(point: str) -> None:
    """End here, if this is the point."""
    try:
        wanted = Path(os.environ[ARMED]).read_text()
    except FileNotFoundError:
        return
    if wanted == point:
        os.kill(os.getpid(), signal.SIGKILL)


def plant(owner: type, name: str, point: str) -> None:
    """Die before or after this method, when told to."""
    method: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(method)
    def planted(*args: Any, **kwargs: Any) -> Any:
        cause = "".join(f" {one.value}" for one in args if isinstance(one, ReleasedBy))
        die_at(f"before {point}{cause}")
        found = method(*args, **kwargs)
        die_at(f"after {point}{cause}")
        return found

    setattr(owner, name, planted)


if __name__ == "__main__":
    tracks.GIVE_UP = Seconds(2.0)  # a test does not wait half a minute for a server that says nothing
    for method, owner in POINTS.items():
        plant(owner, method, method)
    plant(Exchange, "pass_on", "forward")  # what the short way of a request does instead
    sys.exit(cli.main())
