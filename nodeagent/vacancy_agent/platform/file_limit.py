"""How many descriptors the process may have open.

The usual 1024 are fewer than the connections that the listeners of a few upstreams may hold by their own
limits. It is the soft limit, kept low for programs that use `select()`; the agent does not.
"""

from __future__ import annotations

import contextlib
import sys

ENOUGH = 65536


def raise_file_limit() -> None:
    """Raise the soft limit to 65536, or to the hard one if that is lower; where it cannot be, it stays."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - not on every platform

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
        if soft != resource.RLIM_INFINITY and soft < most:
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
