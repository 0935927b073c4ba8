"""One agent per state directory.

The lock is the process's own (POSIX record lock), so it ends with the process, whatever ends it, and is not
inherited by helper processes. Rejected: a file with a process number, which a kill leaves behind; and
`flock`, which a helper that outlives its killed agent would keep.
"""

from __future__ import annotations

import os
import sys
from typing import IO, TYPE_CHECKING

from vacancy_agent.store.errors import InUseError, StoreError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

if TYPE_CHECKING:
    from pathlib import Path


class DirLock:
    """Held from its making until `release`."""

    def __init__(self, path: Path) -> None:
        """Take the lock at `path`.

        Raises:
            InUseError: another process has it.
            StoreError: the file cannot be opened.
        """
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError.of("open the lock", path, error) from error
        self._file: IO[bytes] = os.fdopen(handle, "r+b", buffering=0)
        try:
            _lock(self._file)
        except OSError as error:
            owner = _owner(self._file)
            self._file.close()
            raise InUseError(
                f"another agent{owner} uses {path.parent}: stop it, or give --state-dir"
            ) from error
        self._note_owner()

    def release(self) -> None:
        """Let another agent have the directory."""
        self._file.close()

    def _note_owner(self) -> None:
        # Only for the message of a second agent: a full disk must not keep the first from its lock.
        try:
            self._file.truncate(0)
            self._file.write(str(os.getpid()).encode())
        except OSError:
            return


def _owner(file: IO[bytes]) -> str:
    try:
        text = file.read(20)
    except OSError:  # Windows denies reads of a locked region
        return ""
    return f" (process {int(text)})" if text.isdigit() else ""


def _lock(file: IO[bytes]) -> None:
    if sys.platform == "win32":
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
