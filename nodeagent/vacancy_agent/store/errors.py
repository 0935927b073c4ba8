from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_REMEDIES = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "the disk quota is used up: free some space",
    errno.EACCES: "the agent's user may not write there: change the owner or the mode",
    errno.EPERM: "the agent's user may not write there: change the owner or the mode",
    errno.EROFS: "the file system is read-only: choose another --state-dir",
}


class StoreError(Exception):
    """The state directory cannot be used as asked; the message is for the person who runs the agent."""

    @classmethod
    def of(cls, what: str, path: Path, cause: OSError) -> StoreError:
        """`cause`, said with what was tried and what to do about it."""
        remedy = _REMEDIES.get(cause.errno or 0)
        text = f"cannot {what} {path}: {cause.strerror or cause}"
        return cls(f"{text} ({remedy})" if remedy else text)


class InUseError(StoreError):
    """Another agent runs on this state directory."""
