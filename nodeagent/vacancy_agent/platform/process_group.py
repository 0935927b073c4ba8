"""What POSIX offers to be rid of a program together with everything it started.

Windows needs a job object and other pipes instead; until they are here, these calls say so.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

SUPERVISED = sys.platform != "win32"
"""Whether programs can be run as probes here."""

if sys.platform == "win32":
    _UNSUPPORTED = "programs cannot be supervised on Windows yet"

    def kill_group(pid: int) -> None:
        """Not supported yet."""
        raise NotImplementedError(_UNSUPPORTED)

    def has_exited(pid: int) -> bool:
        """Not supported yet."""
        raise NotImplementedError(_UNSUPPORTED)

    def set_nonblocking(fd: int) -> None:
        """Not supported yet."""
        raise NotImplementedError(_UNSUPPORTED)

else:

    def kill_group(pid: int) -> None:
        """Send SIGKILL to the process group that `pid` leads; nothing happens when it is gone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)

    def has_exited(pid: int) -> bool:
        """Whether a child ended, without reaping it: until it is reaped, its number names no other group."""
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def set_nonblocking(fd: int) -> None:
        """Make reads of `fd` return at once."""
        os.set_blocking(fd, False)
